import {
  Button,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from "@patternfly/react-core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { applyTo, planVm } from "../../api/actions";
import { Async, Failure } from "../../components/Async";
import { ProfileChoice } from "../../components/ProfileChoice";
import { useToasts } from "../../components/toasts";
import { PlanTable } from "./PlanTable";

/** Shows the plan first; nothing is set before Apply. */
export function ApplyDialog({ vm, name, close }: { vm: string; name: string; close: () => void }) {
  const [profile, setProfile] = useState("");
  const toasts = useToasts();
  const what = profile ? { profile } : {};
  const plan = useQuery({
    queryKey: ["vm", "plan", vm, profile],
    queryFn: () => planVm(vm, what),
    retry: false,
  });
  const apply = useMutation({
    mutationFn: () => applyTo(vm, { ...what, best_effort: false }),
    onSuccess: (done) => {
      const effective = done.outcomes.filter((each) => each.status === "effective").length;
      toasts.done(
        `${done.profile} was applied to ${name}`,
        `${effective} of ${done.outcomes.length} settings are effective`,
      );
      close();
    },
  });
  const blocked = (plan.data?.blockers.length ?? 1) > 0;
  return (
    <Modal isOpen variant="large" aria-labelledby="apply-title" onClose={close}>
      <ModalHeader title={`Plan for ${name}`} labelId="apply-title" />
      <ModalBody tabIndex={0}>
        <Form>
          <FormGroup label="Profile" fieldId="apply-profile">
            <ProfileChoice id="apply-profile" value={profile} choose={setProfile} />
          </FormGroup>
        </Form>
        <Async query={plan}>{(data) => <PlanTable plan={data} />}</Async>
        {apply.error && <Failure error={apply.error} inline />}
      </ModalBody>
      <ModalFooter>
        <Button
          isDisabled={blocked || plan.isFetching}
          isLoading={apply.isPending}
          onClick={() => apply.mutate()}
        >
          Apply
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  );
}

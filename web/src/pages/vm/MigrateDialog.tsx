import {
  Button,
  Checkbox,
  Form,
  FormGroup,
  FormSelect,
  FormSelectOption,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from "@patternfly/react-core";
import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { planVm, startMigration } from "../../api/actions";
import { hosts } from "../../api/queries";
import { Async, Failure } from "../../components/Async";
import { ProfileChoice } from "../../components/ProfileChoice";
import { PlanTable } from "./PlanTable";

/** Destination and profile, then the preflight; a blocker has to be overridden by name. */
export function MigrateDialog({
  vm,
  name,
  host,
  close,
}: {
  vm: string;
  name: string;
  host: string;
  close: () => void;
}) {
  const [destination, setDestination] = useState("");
  const [profile, setProfile] = useState("");
  const [overrides, setOverrides] = useState<readonly string[]>([]);
  const navigate = useNavigate();
  const list = useInfiniteQuery(hosts);
  const others = (list.data?.pages.flatMap((page) => page.items) ?? []).filter(
    (each) => each.name !== host,
  );
  const what = { destination, ...(profile ? { profile } : {}) };
  const plan = useQuery({
    queryKey: ["vm", "plan", vm, profile, destination],
    queryFn: () => planVm(vm, what),
    enabled: destination !== "",
    retry: false,
  });
  const start = useMutation({
    mutationFn: () => startMigration({ vm, ...what, overrides: [...overrides] }),
    onSuccess: (migration) => navigate(`/migrations/${migration.id}`),
  });
  const blockers = plan.data?.blockers ?? [];
  const stopped = plan.data === undefined || blockers.some((code) => !overrides.includes(code));
  const override = (code: string, on: boolean) =>
    setOverrides((old) => (on ? [...old, code] : old.filter((each) => each !== code)));
  return (
    <Modal isOpen variant="large" aria-labelledby="migrate-title" onClose={close}>
      <ModalHeader title={`Migrate ${name}`} labelId="migrate-title" />
      <ModalBody tabIndex={0}>
        <Form>
          <FormGroup label="Destination" isRequired fieldId="migrate-destination">
            <FormSelect
              id="migrate-destination"
              value={destination}
              onChange={(_event, chosen) => setDestination(chosen)}
            >
              <FormSelectOption value="" label="Choose a host" isPlaceholder />
              {others.map((each) => (
                <FormSelectOption key={each.name} value={each.name} label={each.name} />
              ))}
            </FormSelect>
          </FormGroup>
          <FormGroup label="Profile" fieldId="migrate-profile">
            <ProfileChoice id="migrate-profile" value={profile} choose={setProfile} />
          </FormGroup>
          {blockers.length > 0 && (
            <FormGroup role="group" label="Go on without what is blocked" fieldId="overrides">
              {blockers.map((code) => (
                <Checkbox
                  key={code}
                  id={`override-${code}`}
                  label={`Override ${code}`}
                  isChecked={overrides.includes(code)}
                  onChange={(_event, on) => override(code, on)}
                />
              ))}
            </FormGroup>
          )}
        </Form>
        {destination !== "" && <Async query={plan}>{(data) => <PlanTable plan={data} />}</Async>}
        {start.error && <Failure error={start.error} inline />}
      </ModalBody>
      <ModalFooter>
        <Button
          isDisabled={stopped || plan.isFetching}
          isLoading={start.isPending}
          onClick={() => start.mutate()}
        >
          Migrate
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  );
}

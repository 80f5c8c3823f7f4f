import {
  Button,
  Checkbox,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from "@patternfly/react-core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { applyTo } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { useToasts } from "../../components/dialogs/toasts";
import { ProfileChoice } from "../../components/forms/ProfileChoice";
import { ApplicationLabel } from "../../components/labels/StateLabel";
import { Problems } from "../../components/layout/Problems";
import { OutcomeTable } from "../../components/migration/OutcomeTable";
import { asWanted } from "./asWanted";
import { type Plan, PlanDialog, usePlan } from "./PlanDialog";

/**
 * Shows the plan first; nothing is set before Apply. What did not go well stays in sight.
 *
 * @param again what the VM is to run with once more, instead of a choice.
 * @param first the profile that is chosen at first; empty for the assigned one.
 */
export function ApplyDialog({
  vm,
  name,
  again,
  first = "",
  close,
}: {
  vm: string;
  name: string;
  again?: { profile: string; revision: number };
  first?: string;
  close: () => void;
}) {
  const [profile, setProfile] = useState(first);
  const [bestEffort, setBestEffort] = useState(false);
  const toasts = useToasts();
  const what = again
    ? { profile: again.profile, revision: again.revision }
    : profile
      ? { profile }
      : {};
  const plan = usePlan(vm, what);
  const apply = useMutation({
    mutationFn: () => applyTo(vm, { ...what, best_effort: bestEffort && leavable(plan.data) }),
    onSuccess: (done) => {
      if (!asWanted(done)) return;
      const effective = done.outcomes.filter((each) => each.status === "effective").length;
      toasts.done(
        `${done.profile} was applied to ${name}`,
        `${effective} of ${done.outcomes.length} settings are effective`,
      );
      close();
    },
  });
  if (apply.data && !asWanted(apply.data)) {
    return <Applied application={apply.data} name={name} close={close} />;
  }
  const blocked = (plan.data?.blockers.length ?? 0) > 0;
  const ready =
    plan.data !== undefined &&
    plan.data.profile !== null &&
    (!blocked || (bestEffort && leavable(plan.data)));
  return (
    <PlanDialog
      title={again ? `Re-apply ${again.profile} r${again.revision} to ${name}` : `Plan for ${name}`}
      action={again ? "Re-apply" : "Apply"}
      plan={plan}
      ready={ready}
      act={() => apply.mutate()}
      acting={apply.isPending}
      error={apply.error}
      close={close}
      fields={
        <>
          {again === undefined && (
            <FormGroup label="Profile" fieldId="apply-profile">
              <ProfileChoice id="apply-profile" value={profile} choose={setProfile} />
            </FormGroup>
          )}
          {blocked && leavable(plan.data) && (
            <Checkbox
              id="best-effort"
              label="Skip refused values and apply the rest"
              isChecked={bestEffort}
              onChange={(_event, on) => setBestEffort(on)}
            />
          )}
        </>
      }
    />
  );
}

/** Whether every blocker stands against a tunable, which can be left out, and none against the VM. */
export function leavable(plan: Plan | undefined): boolean {
  const blockers = plan?.findings.filter((each) => each.severity === "blocker") ?? [];
  return blockers.length > 0 && blockers.every((each) => each.tunable !== null);
}

function Applied({
  application,
  name,
  close,
}: {
  application: Schemas["ApplicationView"];
  name: string;
  close: () => void;
}) {
  const failed = application.state !== "applied";
  return (
    <Modal isOpen variant="large" aria-labelledby="applied-title" onClose={close}>
      <ModalHeader
        labelId="applied-title"
        titleIconVariant={failed ? "danger" : "warning"}
        title={
          failed
            ? `${application.profile} was not applied to ${name}`
            : `${application.profile} was applied to ${name}, but not all values are effective`
        }
      />
      <ModalBody tabIndex={0}>
        <p>
          <ApplicationLabel state={application.state} />{" "}
          {application.state === "failed" && "All values were restored."}
          {application.state === "unknown" &&
            "The host stopped answering: vmtune checks it again automatically."}
        </p>
        <Problems problems={application.problems} />
        <OutcomeTable label="Outcomes" outcomes={application.outcomes} />
      </ModalBody>
      <ModalFooter>
        <Button onClick={close}>Close</Button>
      </ModalFooter>
    </Modal>
  );
}

import { Button } from "@patternfly/react-core";
import { useState } from "react";
import { ApplyDialog } from "../vm/ApplyDialog";
import { usePlan } from "../vm/PlanDialog";
import { type Trial, TryOnVm } from "./TryOnVm";

/** What a stored profile would change for a VM, and the way to apply it there. */
export function PlanForVm({ profile }: { profile: string }) {
  const [trial, setTrial] = useState<Trial>({ vm: null, destination: "" });
  const [applying, setApplying] = useState(false);
  const { vm, destination } = trial;
  const plan = usePlan(
    vm?.uuid ?? "",
    { profile, ...(destination ? { destination } : {}) },
    vm !== null,
  );
  return (
    <>
      <TryOnVm what={profile} trial={trial} choose={setTrial} plan={plan}>
        {vm && (
          <Button variant="secondary" onClick={() => setApplying(true)}>
            Apply to {vm.name}
          </Button>
        )}
      </TryOnVm>
      {applying && vm && (
        <ApplyDialog vm={vm.uuid} name={vm.name} first={profile} close={() => setApplying(false)} />
      )}
    </>
  );
}

/** What can be changed while a migration runs, each with what it will do. */
import {
  ActionList,
  ActionListGroup,
  ActionListItem,
  Button,
  Form,
  FormGroup,
  FormHelperText,
  TextInput,
} from "@patternfly/react-core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { changeMigration } from "../../api/actions";
import { Confirm } from "../../components/Confirm";
import { useToasts } from "../../components/toasts";

interface Control {
  tunable: string;
  action: string;
  label: string;
  /** What becomes of the migration and the guest. */
  effect: string;
  suggestion: string;
}

const CONTROLS: readonly Control[] = [
  {
    tunable: "downtime_limit_ms",
    action: "Raise downtime limit",
    label: "Downtime limit",
    effect:
      "QEMU switches over as soon as it expects to send the rest within this time. The guest may stand still for that long, or longer if QEMU's estimate is wrong.",
    suggestion: "1000 ms",
  },
  {
    tunable: "max_bandwidth_bytes_per_s",
    action: "Change bandwidth",
    label: "Maximum bandwidth",
    effect:
      "The migration sends at most this much. More helps it to end; other traffic on the same network gets less.",
    suggestion: "1 GiB/s",
  },
  {
    tunable: "max_cpu_throttle_percent",
    action: "Limit throttling",
    label: "Maximum throttle",
    effect:
      "How far QEMU may slow down the guest's vCPUs where auto-converge is on. More helps the migration to end; the guest runs slower meanwhile.",
    suggestion: "99 %",
  },
];

/** @param needed the downtime limit in ms that would let it end, where that is known. */
export function Change({ id, needed }: { id: string; needed: number | null }) {
  const [chosen, choose] = useState<Control | null>(null);
  const [value, setValue] = useState("");
  const toasts = useToasts();
  const change = useMutation({
    mutationFn: ({ tunable }: Control) => changeMigration(id, { [tunable]: value.trim() }),
    onSuccess: (_record, { label }) => toasts.done(`${label} is ${value.trim()} now`),
    onError: (error, { label }) => toasts.failed(`${label} was not changed`, error),
  });
  const open = (control: Control) => {
    const known = control.tunable === "downtime_limit_ms" && needed !== null;
    setValue(known ? `${Math.ceil(needed)} ms` : control.suggestion);
    choose(control);
  };
  return (
    <>
      <ActionList>
        <ActionListGroup>
          {CONTROLS.map((each) => (
            <ActionListItem key={each.tunable}>
              <Button variant="secondary" isDisabled={change.isPending} onClick={() => open(each)}>
                {each.action}
              </Button>
            </ActionListItem>
          ))}
        </ActionListGroup>
      </ActionList>
      {chosen && (
        <Confirm
          title={chosen.action}
          action="Change now"
          impossible={value.trim() === ""}
          close={() => choose(null)}
          confirm={() => change.mutate(chosen)}
        >
          <Form onSubmit={(event) => event.preventDefault()}>
            <p>{chosen.effect}</p>
            <FormGroup label={chosen.label} fieldId="change-value">
              <TextInput
                id="change-value"
                value={value}
                onChange={(_event, typed) => setValue(typed)}
              />
              <FormHelperText>
                Holds for this migration. It is recorded like a step, and undone if the migration
                does not complete.
              </FormHelperText>
            </FormGroup>
          </Form>
        </Confirm>
      )}
    </>
  );
}

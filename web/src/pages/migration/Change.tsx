/** What can be done while a migration runs, each with what it will do, or why it cannot be done. */
import {
  ActionList,
  ActionListGroup,
  ActionListItem,
  Button,
  Content,
  Form,
  FormGroup,
  FormHelperText,
  TextInput,
  Tooltip,
} from "@patternfly/react-core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { changeMigration, doWithMigration } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { Confirm } from "../../components/dialogs/Confirm";
import { useToasts } from "../../components/dialogs/toasts";

type Name = Schemas["Control"];

interface Control {
  action: string;
  label: string;
  /** What becomes of the migration and the guest. */
  effect: string;
  /** Sets a tunable. */
  set?: { tunable: string; suggestion: string };
  /** Does something that cannot be undone. */
  do?: NonNullable<Schemas["MigrationChange"]["do"]>;
}

const CONTROLS: Record<Name, Control> = {
  downtime_limit: {
    action: "Raise downtime limit",
    label: "Downtime limit",
    effect:
      "QEMU switches over as soon as it expects to send the rest within this time. The guest may stand still for that long, or longer if QEMU's estimate is wrong.",
    set: { tunable: "downtime_limit_ms", suggestion: "1000 ms" },
  },
  bandwidth: {
    action: "Change bandwidth",
    label: "Maximum bandwidth",
    effect:
      "The migration sends at most this much. More helps it to end; other traffic on the same network gets less.",
    set: { tunable: "max_bandwidth_bytes_per_s", suggestion: "1 GiB/s" },
  },
  throttle: {
    action: "Throttle the guest",
    label: "Maximum throttle",
    effect:
      "How far QEMU may slow down the guest's vCPUs. More helps the migration to end; the guest runs slower meanwhile.",
    set: { tunable: "max_cpu_throttle_percent", suggestion: "99 %" },
  },
  postcopy: {
    action: "Switch to post-copy",
    label: "Post-copy",
    effect:
      "The guest runs on the destination at once and fetches its remaining memory over the network, so the migration ends. The guest is slower until then. The migration cannot be aborted any more, and the guest stops if the connection breaks until you recover it.",
    do: "postcopy",
  },
  pause: {
    action: "Pause the guest",
    label: "The guest",
    effect:
      "The guest stands still until the migration has ended: it changes no memory meanwhile, so the rest is sent in one pass. It continues by itself at the end, wherever it is then.",
    do: "pause",
  },
  disk_writes: {
    action: "Let disk writes wait",
    label: "The guest's writes wait",
    effect:
      "What the guest writes to its disks waits for the destination, too, until they are copied: the copy catches up, and the guest writes more slowly meanwhile. It cannot be undone while the copy runs.",
    set: { tunable: "copy_synchronous_writes", suggestion: "on" },
  },
};

/**
 * @param controls what is possible with this migration.
 * @param needed the downtime limit in ms that would let it end, where that is known.
 */
export function Change({
  id,
  controls,
  needed,
}: {
  id: string;
  controls: readonly Schemas["ControlView"][];
  needed: number | null;
}) {
  const [chosen, choose] = useState<Control | null>(null);
  const [value, setValue] = useState("");
  const toasts = useToasts();
  const change = useMutation({
    mutationFn: (control: Control) =>
      control.do
        ? doWithMigration(id, control.do)
        : changeMigration(id, { [control.set?.tunable ?? ""]: value.trim() }),
    onSuccess: (_record, control) =>
      toasts.done(
        control.do ? `${control.action}: done` : `${control.label} is ${value.trim()} now`,
      ),
    onError: (error, { action }) => toasts.failed(`${action}: not done`, error),
  });
  const open = (control: Control) => {
    const known = control.set?.tunable === "downtime_limit_ms" && needed !== null;
    setValue(known ? `${upTo(needed)} ms` : (control.set?.suggestion ?? ""));
    choose(control);
  };
  const impossible = controls.filter((each) => each.why_not);
  return (
    <>
      <ActionList>
        <ActionListGroup>
          {controls.map(({ name, why_not }) => {
            const control = CONTROLS[name];
            return (
              <ActionListItem key={name}>
                <Tooltip content={why_not ? `Not possible: ${why_not}` : control.effect}>
                  <Button
                    variant="secondary"
                    isAriaDisabled={Boolean(why_not) || change.isPending}
                    onClick={() => open(control)}
                  >
                    {control.action}
                  </Button>
                </Tooltip>
              </ActionListItem>
            );
          })}
        </ActionListGroup>
      </ActionList>
      {impossible.length > 0 && <Content component="small">{reasons(impossible)}</Content>}
      {chosen && (
        <Confirm
          title={chosen.do ? `${chosen.action}?` : chosen.action}
          action={chosen.do ? chosen.action : "Change now"}
          danger={chosen.do !== undefined}
          impossible={chosen.set !== undefined && value.trim() === ""}
          close={() => choose(null)}
          confirm={() => change.mutate(chosen)}
        >
          <Form onSubmit={(event) => event.preventDefault()}>
            <p>{chosen.effect}</p>
            {chosen.set && (
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
            )}
          </Form>
        </Confirm>
      )}
    </>
  );
}

/** Why some are not possible; the same reason is told once. */
function reasons(controls: readonly Schemas["ControlView"][]): string {
  const by = new Map<string, string[]>();
  for (const { name, why_not } of controls) {
    by.set(why_not, [...(by.get(why_not) ?? []), CONTROLS[name].action]);
  }
  return [...by].map(([why, actions]) => `${actions.join(", ")}: ${why}.`).join(" ");
}

/** A limit with two figures that is not below *ms*. */
function upTo(ms: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(ms)) - 1);
  return Math.ceil(ms / step) * step;
}

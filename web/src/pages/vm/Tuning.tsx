import { AlertActionLink, type AlertProps, GridItem } from "@patternfly/react-core";
import type { ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { Moment } from "../../components/labels/Moment";
import { Alert } from "../../components/layout/Alert";

type Vm = Pick<Schemas["VmDetail"], "tuning" | "tuning_state">;

interface Said {
  variant: NonNullable<AlertProps["variant"]>;
  title: string;
  text: ReactNode;
  action?: readonly [text: string, act: () => void];
}

/** Why a VM is not tuned, and what mends that; nothing where it is. */
export function Tuning({
  vm,
  winner,
  reason,
  again,
  apply,
}: {
  vm: Vm;
  /** The assigned profile; null for none. */
  winner: string | null;
  /** Why that one; undefined while it is not known. */
  reason: string | undefined;
  again: () => void;
  apply: () => void;
}) {
  const said = whyNot(vm, winner, reason, again, apply);
  if (said === null) return null;
  return (
    <GridItem>
      <Alert
        isInline
        variant={said.variant}
        title={said.title}
        actionLinks={
          said.action && (
            <AlertActionLink onClick={said.action[1]}>{said.action[0]}</AlertActionLink>
          )
        }
      >
        {said.text}
      </Alert>
    </GridItem>
  );
}

function whyNot(
  { tuning, tuning_state }: Vm,
  winner: string | null,
  reason: string | undefined,
  again: () => void,
  apply: () => void,
): Said | null {
  const had = tuning ? `${tuning.profile} r${tuning.revision}` : "its profile";
  const which = tuning?.differing.join(", ") ?? "";
  const since = tuning && (
    <>
      Since <Moment at={tuning.since} />, as of <Moment at={tuning.as_of} />.
    </>
  );
  switch (tuning_state) {
    case "drifted":
      return {
        variant: "warning",
        title: `Drifted from ${had}: ${which}`,
        text: since,
        action: ["Re-apply", again],
      };
    case "unknown":
      return {
        variant: "warning",
        title: `Values of ${had} could not be read back: ${which}`,
        text: since,
        action: ["Re-apply", again],
      };
    case "pending restart":
      return {
        variant: "info",
        title: `Values of ${had} take effect at the VM's next start: ${which}`,
        text: since,
      };
    case "untuned":
      if (reason === undefined) return null;
      return {
        variant: "info",
        title: winner
          ? `Not tuned: ${winner} is assigned, and was not applied`
          : "Not tuned: no profile is assigned",
        text: reason,
        action: [winner ? "Apply" : "Choose a profile", apply],
      };
    default:
      return null;
  }
}

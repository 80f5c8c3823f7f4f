import { Tooltip } from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { utc } from "../text/format";
import { Moment } from "./Moment";
import { Labelled, type Look } from "./StateLabel";

export type TuningState = Schemas["TuningState"];

/** Every state, worst first, as lists and filters show them. */
export const TUNING: Record<TuningState, { look: Look; means: string }> = {
  drifted: { look: "danger", means: "some values differ from the profile" },
  unknown: { look: "warning", means: "applied values could not be read back" },
  "pending restart": { look: "info", means: "some values take effect at the next start" },
  untuned: { look: undefined, means: "no profile applied" },
  tuned: { look: "success", means: "all values match the profile" },
};
export const TUNING_STATES = Object.keys(TUNING) as TuningState[];

/** How a VM stands, with what differs and as of when on hover. */
export function TuningLabel({
  state,
  tuning,
}: {
  state: TuningState;
  tuning: Schemas["TuningView"] | null;
}) {
  const label = <Labelled look={TUNING[state].look}>{state}</Labelled>;
  if (tuning === null) return label;
  return (
    <Tooltip
      content={
        <>
          {tuning.profile} r{tuning.revision} as of {utc(tuning.as_of)}: {TUNING[state].means}
          {tuning.differing.length > 0 && ` (${tuning.differing.join(", ")})`}, since{" "}
          {utc(tuning.since)}
        </>
      }
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard reaches the tooltip by it */}
      <span tabIndex={0}>{label}</span>
    </Tooltip>
  );
}

/** Since when it stands so, as far as it was looked at. */
export function Since({ tuning }: { tuning: Schemas["TuningView"] | null }) {
  return <Moment at={tuning?.since ?? null} />;
}

/** When it was last looked at. */
export function AsOf({ tuning }: { tuning: Schemas["TuningView"] | null }) {
  return <Moment at={tuning?.as_of ?? null} />;
}

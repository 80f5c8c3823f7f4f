/** States of runs, campaigns and studies, and verdicts: one colour and word for each, everywhere. */
import type { Schemas } from "../../api/client";
import { Labelled, type Look } from "./StateLabel";

type RunState = Schemas["RunState"];

export const RUN_STATES: Record<RunState, Look> = {
  queued: undefined,
  running: "info",
  completed: "success",
  "ended as planned": "success",
  "not converged": "warning",
  failed: "danger",
  cancelled: undefined,
  interrupted: undefined,
};

export function RunLabel({ state }: { state: RunState }) {
  return <Labelled look={RUN_STATES[state]}>{state}</Labelled>;
}

export const CAMPAIGN_STATES: Record<Schemas["CampaignState"], Look> = {
  running: "info",
  paused: "warning",
  completed: "success",
  cancelled: undefined,
  failed: "danger",
};

export function CampaignLabel({ state }: { state: Schemas["CampaignState"] }) {
  return <Labelled look={CAMPAIGN_STATES[state]}>{state}</Labelled>;
}

export const STUDY_STATES: Record<Schemas["StudyState"], Look> = {
  queued: undefined,
  searching: "info",
  paused: "warning",
  confirming: "info",
  completed: "success",
  cancelled: undefined,
  failed: "danger",
};

export function StudyLabel({ state }: { state: Schemas["StudyState"] }) {
  return <Labelled look={STUDY_STATES[state]}>{state}</Labelled>;
}

const VERDICTS: Record<Schemas["Verdict"], Look> = {
  better: "success",
  worse: "danger",
  equivalent: "info",
  inconclusive: "warning",
  "insufficient data": "warning",
  "confounded with time": "warning",
};

/** What *comparison* comes to. A claim below the machine's noise is marked as such. */
export function VerdictLabel({ comparison }: { comparison: Schemas["Comparison"] }) {
  const verdict = comparison.verdict ?? null;
  if (verdict === null) {
    const neither = comparison.criterion.direction === "none";
    return <Labelled look={undefined}>{neither ? "no direction" : "withheld"}</Labelled>;
  }
  const doubtful =
    comparison.below_noise_floor === true && (verdict === "better" || verdict === "worse");
  if (doubtful) return <Labelled look="warning">{`${verdict}, below the noise floor`}</Labelled>;
  return <Labelled look={VERDICTS[verdict]}>{verdict}</Labelled>;
}

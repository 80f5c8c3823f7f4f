import type { Schemas } from "../../api/client";

const FINE: readonly Schemas["Status"][] = ["effective", "pending migration", "pending restart"];

/** Whether a value is effective, or waits for its migration or restart. */
export function isFine(outcome: Schemas["OutcomeView"]): boolean {
  return FINE.includes(outcome.status);
}

/** Whether all that was applied is effective, or waits. */
export function asWanted(done: Schemas["ApplicationView"]): boolean {
  return done.state === "applied" && done.outcomes.every(isFine);
}

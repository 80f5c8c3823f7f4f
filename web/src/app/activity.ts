/** What takes its time, in words, and what has ended since it was last looked at. */
import type { Schemas } from "../api/client";
import type { Look } from "../components/labels/StateLabel";

export type Activity = Schemas["ActivityView"];

const PAGES: Record<Activity["kind"], (each: Activity) => string | null> = {
  migration: ({ id }) => `/migrations/${id}`,
  application: () => null,
  evacuation: ({ id, host }) => `/hosts/${encodeURIComponent(host ?? "")}/evacuations/${id}`,
  campaign: ({ id }) => `/bench/campaigns/${id}`,
  study: ({ id }) => `/bench/studies/${id}`,
  run: ({ id }) => `/bench/runs/${id}`,
};

export const addressOf = (each: Activity): string | null => PAGES[each.kind](each);

const GOOD = new Set(["completed", "ended as planned", "applied", "reverted"]);
const BAD = new Set(["failed", "postcopy-paused"]);

export function lookOf({ state, ended }: Activity): Look {
  if (BAD.has(state)) return "danger";
  if (!ended) return "info";
  return GOOD.has(state) ? "success" : "warning";
}

/** Those of *now* that have ended, and that *before* had as running. */
export function endsSince(before: readonly Activity[], now: readonly Activity[]): Activity[] {
  const ran = new Set(before.filter((each) => !each.ended).map(({ id }) => id));
  return now.filter((each) => each.ended && ran.has(each.id));
}

/** "web1: migration completed". */
export const inShort = ({ title, kind, state }: Activity): string => `${title}: ${kind} ${state}`;

/** Several ends in one line: "3 completed, 1 failed". */
export function summed(ends: readonly Activity[]): string {
  const by = new Map<string, number>();
  for (const { state } of ends) by.set(state, (by.get(state) ?? 0) + 1);
  return [...by].map(([state, number]) => `${number} ${state}`).join(", ");
}

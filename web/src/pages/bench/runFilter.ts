/** The filter of the runs table, as it stands in the address. */
import type { RunFilter } from "../../api/bench";
import type { Schemas } from "../../api/client";
import { RUN_STATES } from "../../components/labels/BenchLabels";

/** What links of other pages narrow the runs to, with its word. */
export const EXACT = [
  ["scenario", "Scenario"],
  ["arm", "Arm"],
  ["profile", "Profile"],
  ["host", "Machine"],
  ["fingerprint", "Environment"],
] as const;
const WORDS = [...EXACT.map(([key]) => key), "campaign", "search"] as const;
type State = Schemas["RunState"];

export const STATES = Object.keys(RUN_STATES) as State[];

/** What is no filter of ours is passed over: addresses are typed by people, too. */
export function runFilter(search: URLSearchParams): RunFilter {
  const filter: RunFilter = {};
  for (const word of WORDS) {
    const value = search.get(word);
    if (value) filter[word] = value;
  }
  const states = STATES.filter((state) => search.getAll("state").includes(state));
  if (states.length > 0) filter.state = states;
  const since = startOfDay(search.get("since") ?? "");
  if (since !== null) filter.since = since;
  return filter;
}

/** "2026-11-21" as the moment at which that day begins where the reader is; null for no day. */
export function startOfDay(day: string): string | null {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day)) return null;
  const begun = new Date(`${day}T00:00:00`);
  return Number.isNaN(begun.getTime()) ? null : begun.toISOString();
}

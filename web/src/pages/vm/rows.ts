/** The rows of a VM's settings: what is wanted of a tunable, what is there, and what became of it. */
import type { Schemas } from "../../api/client";

type Tunable = Schemas["TunableView"];
type Outcome = Schemas["OutcomeView"];
type Reading = Schemas["ReadingView"];

export interface SettingRow {
  name: string;
  /** Null where nothing is wanted: unset is neither off nor zero. */
  wanted: string | null;
  /** What QEMU runs with; by part where parts differ. */
  current: string;
  /** What the next start would bring, where that is something else. */
  atNextStart: string | null;
  outcome: Outcome | null;
  route: Tunable["route"];
  when: Tunable["takes_effect"];
  /** Who would undo it if it were set by another route; empty for nobody. */
  overwriter: string;
}

/** A reading as people read it. */
export function inWords(reading: Reading | undefined): string {
  if (reading === undefined) return "not read";
  const parts = Object.entries(reading.part_texts);
  if (reading.value === null && parts.length > 0) {
    return parts.map(([owner, text]) => `${owner}: ${text}`).join(", ");
  }
  return reading.why_unknown ? `${reading.text} (${reading.why_unknown})` : reading.text;
}

/**
 * @param everything also what nothing is wanted of.
 */
export function settingRows(
  tunables: readonly Tunable[],
  outcomes: readonly Outcome[],
  readings: Readonly<Record<string, Reading>>,
  bootReadings: Readonly<Record<string, Reading>>,
  everything: boolean,
): SettingRow[] {
  const found = new Map(outcomes.map((each) => [each.tunable, each]));
  return tunables
    .filter((row) => everything || found.has(row.name))
    .map((row) => {
      const outcome = found.get(row.name) ?? null;
      const current = inWords(readings[row.name]);
      const boot = bootReadings[row.name];
      const next = boot === undefined ? current : inWords(boot);
      return {
        name: row.name,
        wanted: outcome?.wanted?.text ?? null,
        current,
        atNextStart: next === current ? null : next,
        outcome,
        route: row.route,
        when: row.takes_effect,
        overwriter: row.overwriter,
      };
    });
}

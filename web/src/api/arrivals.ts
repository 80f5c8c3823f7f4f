/** VMs that libvirt is about to take in by a migration that others began, as its hook tells. */
import type { LiveEvent } from "./live";

export interface Arrival {
  vm: string;
  name: string;
  /** The host that it leaves; missing where it was never seen. */
  source?: string;
  /** Empty where none is assigned. */
  profile: string;
  revision: number;
  /** What its QEMU is started with there, by tunable. */
  given: Readonly<Record<string, unknown>>;
  /** What of the profile it is not started with, by tunable, with the code of the reason. */
  withheld: Readonly<Record<string, string>>;
  at: string;
}

/** One that never began, or that the service did not see, is not told for ever. */
export const ARRIVES_WITHIN_MS = 10 * 60_000;

const OVER: readonly unknown[] = ["completed", "failed", "cancelled", "unknown"];

/** *known* after *event*: a VM arrives until its migration is over. The same where nothing changed. */
export function arrivalsAfter(known: readonly Arrival[], event: LiveEvent): readonly Arrival[] {
  if (event.id === null || event.at === null) return known;
  const others = () => known.filter((each) => each.vm !== event.data.vm);
  // One of vmtune's own has a record already, which says more.
  if (event.topic === "arrival" && event.data.migration === undefined) {
    return [...others(), { ...(event.data as unknown as Omit<Arrival, "at">), at: event.at }];
  }
  const over = event.topic === "migration" && OVER.includes(event.data.state);
  return over && known.some((each) => each.vm === event.data.vm) ? others() : known;
}

/** Those of *known* that still may arrive at that moment. */
export function arriving(known: readonly Arrival[], now: number): readonly Arrival[] {
  return known.filter((each) => now - Date.parse(each.at) < ARRIVES_WITHIN_MS);
}

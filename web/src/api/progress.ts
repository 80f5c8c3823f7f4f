/** Passing progress of a running migration, as the event stream carries it. */
import type { LiveEvent } from "./live";

export interface Progress {
  share: number;
  at_ms: number;
  status: string;
  iteration: number;
  transferred_bytes: number;
  remaining_bytes: number;
  total_bytes: number;
  dirty_bytes_per_s: number;
  throughput_bytes_per_s: number;
  throttle_percent: number;
  expected_downtime_ms: number | null;
  /** Where the dirty-ring reaper runs. */
  reaper?: { interval_ms: number; fullest: number };
}

/** The progress that *event* carries; null where it is a stored change. */
export function progressOf(event: LiveEvent): Progress | null {
  if (event.topic !== "migration" || event.id !== null) return null;
  return typeof event.data.share === "number" ? (event.data as unknown as Progress) : null;
}

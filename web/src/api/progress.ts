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
  /** These and the expected downtime are null until QEMU has measured them. */
  dirty_bytes_per_s: number | null;
  throughput_bytes_per_s: number | null;
  throttle_percent: number;
  expected_downtime_ms: number | null;
  /** What is expected of it; null where nobody asked. */
  outlook: Outlook | null;
  /** Where the dirty-ring reaper runs. */
  reaper?: { interval_ms: number; fullest: number };
  /** Where local disks are copied: they come before the memory, whose figures are 0 until then. */
  phase?: "disks" | "memory";
  disks?: CopyProgress[];
  /** Until all disks have caught up with the guest; null where that is not known. */
  disks_left_ms?: number | null;
}

/** How far the copy of a disk is. */
export interface CopyProgress {
  target: string;
  copied_bytes: number;
  total_bytes: number;
  bytes_per_s: number;
  /** What the guest writes meanwhile. */
  written_bytes_per_s: number;
  left_ms: number | null;
  /** False where the guest writes as fast as is copied; null while that is not known. */
  converges: boolean | null;
  /** It has caught up, and follows the guest. */
  ready: boolean;
}

export interface Outlook {
  /** Whether it ends by itself; null while that is not known. */
  ends: boolean | null;
  /** Until the guest runs on the destination, and the bounds of nine in ten. */
  left_ms: number | null;
  least_left_ms: number | null;
  most_left_ms: number | null;
  silence_ms: number | null;
  /** Until the present pass has been sent. */
  pass_left_ms: number | null;
  needs: Needs | null;
}

/** Each alone would let it end. */
export interface Needs {
  downtime_limit_ms: number | null;
  throughput_bytes_per_s: number | null;
  throttle_percent: number | null;
  /** False where the migration was started without it; a forecast does not say. */
  postcopy?: boolean;
}

/** The progress that *event* carries; null where it is a stored change. */
export function progressOf(event: LiveEvent): Progress | null {
  if (event.topic !== "migration" || event.id !== null) return null;
  return typeof event.data.share === "number" ? (event.data as unknown as Progress) : null;
}

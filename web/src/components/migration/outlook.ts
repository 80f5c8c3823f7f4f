/** What is expected of a running migration, in words. */
import type { Needs, Progress } from "../../api/progress";
import { percent, rate } from "../text/format";

/** QEMU's status once all has arrived: its figures are those of nothing any more. */
export const COMPLETED = "completed";

/** When it ends, or what would let it end; null where nothing is to be said. */
export function expected(progress: Progress): string | null {
  const { outlook, status, iteration } = progress;
  if (status === COMPLETED) return "QEMU has completed, the record is being finished";
  if (outlook === null || status === "device") return null;
  if (outlook.ends === false) return `will not end by itself${helps(outlook.needs)}`;
  const { left_ms: left, least_left_ms: least, most_left_ms: most } = outlook;
  if (left === null) {
    const first = iteration <= 1 && outlook.pass_left_ms !== null;
    return first
      ? `first pass done in about ${about(outlook.pass_left_ms ?? 0)}, end not known yet`
      : "end not known yet";
  }
  const between =
    least === null || most === null || about(least) === about(most)
      ? ""
      : ` (${about(least)} to ${about(most)})`;
  return `about ${about(left)} left${between}`;
}

/** What would let it end, to be put after that it will not. */
export function helps(needs: Needs | null): string {
  if (needs === null) return "";
  const ways = [
    ...(needs.downtime_limit_ms === null
      ? []
      : [`a downtime limit of ${about(needs.downtime_limit_ms)}`]),
    ...(needs.throughput_bytes_per_s === null
      ? []
      : [`${rate(needs.throughput_bytes_per_s)} of throughput`]),
    ...(needs.throttle_percent === null
      ? []
      : [`a throttle of ${percent(needs.throttle_percent)}`]),
    ...(needs.postcopy === false ? [] : ["post-copy"]),
  ];
  return ways.length === 0 ? "" : `: needs ${ways.join(" or ")}`;
}

/** A time to about two figures. */
export function about(ms: number): string {
  const seconds = ms / 1000;
  if (seconds < 1) return `${Math.max(10, Math.round(ms / 10) * 10)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

/** Disks that are copied along with a migration, in words. */
import type { Schemas } from "../../api/client";
import type { CopyProgress, Progress } from "../../api/progress";
import { bytes, rate } from "../text/format";
import { about } from "./outlook";

/** How far the copies are while nothing else is sent. */
export function copying(progress: Progress): string {
  const left = progress.disks_left_ms ?? null;
  return [
    "copying disks",
    ...(left === null ? [] : [`about ${about(left)} left`]),
    ...(progress.disks ?? []).map((disk) => `${disk.target} ${copied(disk)}`),
    "then the memory",
  ].join(" · ");
}

/** A disk that is to be copied, and how much there is of it. */
export function plannedDisk(disk: Schemas["PlannedDiskView"]): string {
  const { target, path, allocated_bytes: taken, capacity_bytes: whole } = disk;
  if (taken === null) return `${target}: ${path}`;
  return `${target}: ${path}, ${bytes(taken)}${whole === null ? "" : ` of ${bytes(whole)}`}`;
}

/** How far one is. */
export function copied(disk: CopyProgress): string {
  if (disk.ready) return "has caught up";
  const pace = disk.bytes_per_s > 0 ? ` at ${rate(disk.bytes_per_s)}` : "";
  return `${bytes(disk.copied_bytes)} of ${bytes(disk.total_bytes)}${pace}`;
}

/** What would help a copy that does not catch up; null where it does. */
export function behind(disk: CopyProgress): string | null {
  if (disk.ready || disk.converges !== false) return null;
  return (
    `${disk.target} does not catch up: the guest writes ${rate(disk.written_bytes_per_s)} to it, ` +
    `and ${rate(disk.bytes_per_s)} are copied. It needs more bandwidth, or copy_synchronous_writes.`
  );
}

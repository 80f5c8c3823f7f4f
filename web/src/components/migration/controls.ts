/** What helps a running migration to end: in words, and the value to begin with. */
import type { Schemas } from "../../api/client";
import type { Needs } from "../../api/progress";

type Tunable =
  | "downtime_limit_ms"
  | "max_bandwidth_bytes_per_s"
  | "max_cpu_throttle_percent"
  | "copy_synchronous_writes";

export interface Control {
  action: string;
  label: string;
  /** What becomes of the migration and the guest. */
  effect: string;
  /** Sets a tunable. */
  set?: { tunable: Tunable; suggestion: string };
  /** Does something that cannot be undone. */
  do?: NonNullable<Schemas["MigrationChange"]["do"]>;
}

export const CONTROLS: Record<Schemas["Control"], Control> = {
  downtime_limit: {
    action: "Raise downtime limit",
    label: "Downtime limit",
    effect:
      "QEMU switches over as soon as it expects to send the rest within this time. The guest may stand still for that long, or longer if QEMU's estimate is wrong.",
    set: { tunable: "downtime_limit_ms", suggestion: "1000 ms" },
  },
  bandwidth: {
    action: "Change bandwidth",
    label: "Maximum bandwidth",
    effect:
      "The migration sends at most this much. More helps it to end; other traffic on the same network gets less.",
    set: { tunable: "max_bandwidth_bytes_per_s", suggestion: "1 GiB/s" },
  },
  throttle: {
    action: "Throttle the guest",
    label: "Maximum throttle",
    effect:
      "How far QEMU may slow down the guest's vCPUs. More helps the migration to end; the guest runs slower meanwhile.",
    set: { tunable: "max_cpu_throttle_percent", suggestion: "99 %" },
  },
  postcopy: {
    action: "Switch to post-copy",
    label: "Post-copy",
    effect:
      "The guest runs on the destination at once and fetches its remaining memory over the network, so the migration ends. The guest is slower until then. The migration cannot be aborted any more, and the guest stops if the connection breaks until you recover it.",
    do: "postcopy",
  },
  pause: {
    action: "Pause the guest",
    label: "The guest",
    effect:
      "The guest stands still until the migration has ended: it changes no memory meanwhile, so the rest is sent in one pass. It continues by itself at the end, wherever it is then.",
    do: "pause",
  },
  disk_writes: {
    action: "Let disk writes wait",
    label: "Synchronous disk writes",
    effect:
      "What the guest writes to its disks waits for the destination, too, until they are copied: the copy catches up, and the guest writes more slowly meanwhile. It cannot be undone while the copy runs.",
    set: { tunable: "copy_synchronous_writes", suggestion: "on" },
  },
};

const MIB = 1 << 20;
const GIB = 1 << 30;

/**
 * The value to suggest: what would let it end where that is known; else, of the downtime limit,
 * twice the present one, so that it is never lowered.
 *
 * @param needs what would let it end, each alone.
 * @param presentMs the downtime limit in force; null where it is not known.
 */
export function suggested({ set }: Control, needs: Needs | null, presentMs: number | null): string {
  if (!set) return "";
  if (set.tunable === "downtime_limit_ms") {
    const needed = needs?.downtime_limit_ms ?? null;
    if (needed !== null && needed > (presentMs ?? 0)) return `${upTo(needed)} ms`;
    return presentMs ? `${2 * presentMs} ms` : set.suggestion;
  }
  if (set.tunable === "max_bandwidth_bytes_per_s") {
    const needed = needs?.throughput_bytes_per_s ?? null;
    return needed ? bandwidth(needed) : set.suggestion;
  }
  if (set.tunable === "max_cpu_throttle_percent") {
    const needed = needs?.throttle_percent ?? null;
    return needed ? `${Math.min(99, Math.ceil(needed))} %` : set.suggestion;
  }
  return set.suggestion;
}

/** A limit with two figures that is not below *ms*. */
function upTo(ms: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(ms)) - 1);
  return Math.ceil(ms / step) * step;
}

/** As people write it, of whole MiB and not below *bytesPerS*. */
function bandwidth(bytesPerS: number): string {
  const mib = upTo(Math.ceil(bytesPerS / MIB));
  return mib >= 10 * (GIB / MIB) ? `${Math.ceil(bytesPerS / GIB)} GiB/s` : `${mib} MiB/s`;
}

/** How a running migration stands right now, as terms and figures. */
import type { Schemas } from "../../api/client";
import type { Progress } from "../../api/progress";
import type { Fact } from "../../components/layout/Facts";
import { about, COMPLETED, expected } from "../../components/migration/outlook";
import { bytes, count, duration, percent, rate } from "../../components/text/format";

const UNKNOWN = "unknown";
const PHASES = { disks: "disks are copied, then the memory", memory: "the memory is sent" };

/**
 * @param sample the newest one that is stored: it has figures that progress leaves out.
 */
export function standing(
  record: Pick<Schemas["MigrationView"], "outcomes" | "phase">,
  progress: Progress | undefined,
  sample: Schemas["SampleView"] | undefined,
): Fact[] {
  // No event has come yet.
  if (progress === undefined) return [["Phase", record.phase ? PHASES[record.phase] : UNKNOWN]];
  if (progress.phase === "disks") {
    const left = progress.disks_left_ms ?? null;
    return [
      ["Phase", PHASES.disks],
      ...(left === null ? [] : ([["Disks", `about ${about(left)} left`]] satisfies Fact[])),
    ];
  }
  const end = expected(progress);
  const limit = record.outcomes.find((each) => each.tunable === "downtime_limit_ms");
  const facts: Fact[] = [
    ["Phase", progress.status],
    ...(end === null ? [] : ([["Outlook", end]] satisfies Fact[])),
    ["Iteration", count(progress.iteration)],
    ["Remaining", `${bytes(progress.remaining_bytes)} of ${bytes(progress.total_bytes)}`],
    ["Transferred", bytes(progress.transferred_bytes)],
    ["Dirty rate and throughput", rates(progress)],
    ...(progress.status === COMPLETED
      ? []
      : ([["Expected downtime", downtime(progress.expected_downtime_ms, limit)]] satisfies Fact[])),
    ["Guest throttling", slowDown(progress, sample)],
  ];
  if (progress.reaper) {
    facts.push([
      "Dirty rings",
      `reaped every ${duration(progress.reaper.interval_ms)}, highest fill ${percent(progress.reaper.fullest * 100)}`,
    ]);
  }
  return facts;
}

function rates({ dirty_bytes_per_s: dirty, throughput_bytes_per_s: sent }: Progress): string {
  const known = (each: number | null) => (each === null ? "not known yet" : rate(each));
  return `dirty ${known(dirty)}, sent ${known(sent)}`;
}

function downtime(expected: number | null, limit: Schemas["OutcomeView"] | undefined): string {
  const allowed = limit?.seen ?? limit?.wanted;
  const text = expected === null ? "not known yet" : duration(expected);
  return allowed ? `${text}, at most ${allowed.text}` : text;
}

function slowDown(progress: Progress, sample: Schemas["SampleView"] | undefined): string {
  const ways = [
    ...(progress.throttle_percent
      ? [`${percent(progress.throttle_percent)} of its CPU time, by QEMU's throttle`]
      : []),
    ...(sample && sample.dirty_limit_throttle_us > 0
      ? [`${count(sample.dirty_limit_throttle_us)} µs per round, by the dirty limit`]
      : []),
  ];
  return ways.length > 0 ? ways.join("; ") : "none";
}

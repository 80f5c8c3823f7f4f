/** One thing done to many VMs: a few at a time, within limits, and what became of each. */
import type { VmRow } from "../../api/tuning";

/** Worst first, as results are listed. */
export const VERDICTS = ["failed", "unknown", "differs", "skipped", "done"] as const;
export type Verdict = (typeof VERDICTS)[number];
const BAD: readonly Verdict[] = ["failed", "unknown"];

export interface Done {
  verdict: Verdict;
  /** What became of it; empty where the verdict says all. */
  text: string;
  /** Where more is to be seen. */
  to?: string;
}

export interface Result extends Done {
  vm: VmRow;
}

export interface Limits {
  /** As many VMs are changed at most; those that are skipped do not count. */
  most: number;
  /** No more are begun after so many failures. */
  stopAfter: number;
  atOnce: number;
}

/** Why it ended before the last VM; empty where it did not. */
export type Ended = "" | "limit" | "failures" | "stopped";

/**
 * Do *work* to each of *vms*, which a UUID names once.
 *
 * @param work never throws.
 * @param tell hears of each VM as it is done.
 */
export async function inBulk(
  vms: Iterable<VmRow> | AsyncIterable<VmRow>,
  work: (vm: VmRow) => Promise<Done>,
  limits: Limits,
  tell: (result: Result) => void,
  stop: AbortSignal,
): Promise<Ended> {
  const seen = new Set<string>();
  const next = oneByOne(vms);
  let tried = 0;
  let bad = 0;
  let ended: Ended = "";
  const worker = async () => {
    for (;;) {
      if (stop.aborted) ended ||= "stopped";
      if (bad >= limits.stopAfter) ended ||= "failures";
      if (ended) return;
      if (tried >= limits.most) {
        if (!(await next()).done) ended ||= "limit";
        return;
      }
      tried += 1;
      const { value: vm, done } = await next();
      if (done || vm === undefined || seen.has(vm.uuid)) {
        tried -= 1;
        if (done) return;
        continue;
      }
      seen.add(vm.uuid);
      const found = await work(vm);
      if (found.verdict === "skipped") tried -= 1;
      if (BAD.includes(found.verdict)) bad += 1;
      tell({ vm, ...found });
    }
  };
  await Promise.all(Array.from({ length: limits.atOnce }, worker));
  return ended;
}

/** The next of *all*, also where several ask at once. */
function oneByOne<T>(all: Iterable<T> | AsyncIterable<T>): () => Promise<IteratorResult<T>> {
  const items = Symbol.asyncIterator in all ? all[Symbol.asyncIterator]() : all[Symbol.iterator]();
  let before: Promise<unknown> = Promise.resolve();
  return () => {
    const asked = before.then(() => items.next());
    before = asked.catch(() => undefined);
    return asked;
  };
}

export function countsOf(results: readonly Result[]): Partial<Record<Verdict, number>> {
  const counts: Partial<Record<Verdict, number>> = {};
  for (const { verdict } of results) counts[verdict] = (counts[verdict] ?? 0) + 1;
  return counts;
}

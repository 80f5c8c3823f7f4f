import { expect, test } from "vitest";
import type { VmRow } from "../../api/tuning";
import { vmRow } from "../../test/vms";
import { countsOf, type Done, inBulk, type Result } from "./bulk";

const LIMITS = { most: 50, stopAfter: 3, atOnce: 2 };
const many = (count: number) => Array.from({ length: count }, (_, n) => vmRow(`vm${n}`));

async function run(
  vms: Iterable<VmRow> | AsyncIterable<VmRow>,
  work: (vm: VmRow) => Promise<Done>,
  part: Partial<typeof LIMITS> = {},
  stop = new AbortController(),
) {
  const results: Result[] = [];
  const tell = (result: Result) => results.push(result);
  const ended = await inBulk(vms, work, { ...LIMITS, ...part }, tell, stop.signal);
  return { ended, results, counts: countsOf(results) };
}

const fine = async (): Promise<Done> => ({ verdict: "done", text: "" });

test("each VM has its turn once, although two hosts list it", async () => {
  const vms = many(5);
  const found = await run([...vms, ...vms], fine);
  expect(found.results.map((each) => each.vm.name).sort()).toEqual(vms.map((each) => each.name));
  expect(found.ended).toBe("");
});

test("no more than the limit are begun, and a list that ends there is complete", async () => {
  const over = await run(many(5), fine, { most: 3 });
  expect([over.ended, over.counts]).toEqual(["limit", { done: 3 }]);
  const whole = await run(many(3), fine, { most: 3 });
  expect([whole.ended, whole.counts]).toEqual(["", { done: 3 }]);
});

test("what is skipped does not count against the limit", async () => {
  const work = async (vm: VmRow): Promise<Done> => ({
    verdict: Number(vm.name.slice(2)) < 4 ? "skipped" : "done",
    text: "",
  });
  const found = await run(many(8), work, { most: 2, atOnce: 1 });
  expect(found.counts).toEqual({ skipped: 4, done: 2 });
});

test("it stops after failures", async () => {
  const failing = async (): Promise<Done> => ({ verdict: "failed", text: "no" });
  const found = await run(many(9), failing, { stopAfter: 2, atOnce: 1 });
  expect([found.ended, found.counts]).toEqual(["failures", { failed: 2 }]);
});

test("it can be stopped: what was begun is told of", async () => {
  const stop = new AbortController();
  const work = async (vm: VmRow): Promise<Done> => {
    if (vm.name === "vm2") stop.abort();
    return { verdict: "done", text: "" };
  };
  const found = await run(many(9), work, { atOnce: 1 }, stop);
  expect([found.ended, found.counts]).toEqual(["stopped", { done: 3 }]);
});

test("pages that arrive later are waited for, and read no further than needed", async () => {
  let asked = 0;
  async function* pages() {
    for (const vm of many(1000)) {
      asked += 1;
      await Promise.resolve();
      yield vm;
    }
  }
  const found = await run(pages(), fine, { most: 4 });
  expect(found.counts).toEqual({ done: 4 });
  expect(asked).toBeLessThan(8);
});

import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { boundaries, byteAxis, marks, rates, reaping, remaining, spanOf } from "./series";

const sample = (at_ms: number, boundary: boolean) =>
  ({ at_ms, boundary, iteration: at_ms / 100 }) as Schemas["SampleView"];

test("an iteration begins where a sample says so", () => {
  expect(boundaries([sample(0, false), sample(100, true), sample(200, false)])).toEqual([
    { at_ms: 100, iteration: 1 },
  ]);
});

test("steps are marked among the iterations", () => {
  const found = marks([sample(100, true)], [{ at_ms: 150, action: "pause" }]).data;
  expect(found.map(({ xAxis, name }) => [xAxis, name])).toEqual([
    [100, "1"],
    [150, "step 1"],
  ]);
});

test("many iterations leave room for the lines, and every step stays", () => {
  const samples = Array.from({ length: 1000 }, (_, number) => sample(number * 100, true));
  const steps = Array.from({ length: 3 }, (_, at_ms) => ({ at_ms, action: "set" }));
  const found = marks(samples, steps).data;
  expect(found.length).toBeLessThanOrEqual(23);
  expect(found.filter((each) => each.name.startsWith("step"))).toHaveLength(3);
});

test("an iteration that begins right before a step leaves the label to the step", () => {
  const samples = [sample(0, true), sample(9_900, true), sample(20_000, false)];
  const found = marks(samples, [{ at_ms: 10_000, action: "pause" }]).data;
  expect(found.map((each) => [each.xAxis, each.name])).toEqual([
    [0, expect.any(String)],
    [9_900, ""],
    [10_000, "step 1"],
  ]);
});

test("bytes are marked at round numbers of binary units, few of them", () => {
  expect(byteAxis(6.2 * 2 ** 20)).toMatchObject({ interval: 2 ** 21, max: 2 ** 23 });
  for (const most of [0, 1, 5, 1000, 1024, 3e6, 12_345_678_901]) {
    const { interval, max } = byteAxis(most);
    expect(max).toBeGreaterThanOrEqual(most);
    expect(max / interval).toBeGreaterThanOrEqual(1);
    expect(max / interval).toBeLessThanOrEqual(6);
    expect(Number.isInteger(Math.log2(interval))).toBe(true);
  }
});

test("the charts of a page share a span that holds all that happened", () => {
  const samples = [{ at_ms: 10 }, { at_ms: 9_300 }];
  expect(spanOf(samples)).toEqual({ from: 10, to: 9_300 });
  expect(spanOf(samples, [{ at_ms: -1_200 }, { at_ms: 9_900 }])).toEqual({
    from: -1_200,
    to: 9_900,
  });
  expect(spanOf(samples, [], [{ at_ms: 4_000 }, { at_ms: 9_700 }])).toEqual({
    from: 10,
    to: 9_700,
  });
  expect(spanOf([])).toEqual({ from: 0, to: 1 });
  const axis = { from: -1_200, to: 9_900 };
  for (const option of [rates([], [], axis), remaining([], String, [], axis), reaping([], axis)]) {
    expect(option.xAxis).toMatchObject({ min: -1_200, max: 9_900 });
  }
});

test("charts of one page are as wide as each other, so that a moment stands below itself", () => {
  const grids = [rates([]), remaining([], String), reaping([])].map((option) => option.grid);
  expect(new Set(grids.map((each) => JSON.stringify(each))).size).toBe(1);
});

test("a dirty rate that QEMU does not know yet is not drawn as none", () => {
  const rated = (at_ms: number, pages: number) =>
    ({ ...sample(at_ms, false), dirty_pages_per_s: pages, page_size_bytes: 4096 }) as const;
  const lines = rates([rated(0, 0), rated(50, 0), rated(100, 7), rated(150, 0)]).series as {
    name: string;
    data: unknown;
  }[];
  expect(lines.find((each) => each.name === "Dirty rate")?.data).toEqual([
    [100, 7 * 4096],
    [150, 0],
  ]);
});

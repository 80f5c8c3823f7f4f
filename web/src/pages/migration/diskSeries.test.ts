import { expect, test } from "vitest";
import { copies, toCopy } from "./diskSeries";

const MIB = 1 << 20;
const taken = [1000, 2000].flatMap((at_ms, turn) =>
  ["vda", "vdb"].map((target, place) => ({
    at_ms,
    target,
    copied_bytes: (turn + place) * MIB,
    total_bytes: 4 * MIB,
    bytes_per_s: MIB,
    written_bytes_per_s: place * MIB,
  })),
);

test("each disk has a line of what is copied, and one of what the guest writes", () => {
  const { series } = copies(taken) as { series: { name: string; data: number[][] }[] };
  expect(series.map(({ name }) => name)).toEqual([
    "vda: copied",
    "vda: written",
    "vdb: copied",
    "vdb: written",
  ]);
  expect(series[3]?.data).toEqual([
    [1000, MIB],
    [2000, MIB],
  ]);
});

test("what remains is never less than nothing", () => {
  const over = taken.map((each) => ({ ...each, total_bytes: MIB }));
  const { series } = toCopy(over) as { series: { data: number[][] }[] };
  expect(series[1]?.data.map(([, left]) => left)).toEqual([0, 0]);
});

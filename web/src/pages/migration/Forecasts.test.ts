import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { compared } from "./Forecasts";

const kept: Schemas["KeptForecastView"] = {
  basis: "before",
  made_at: "2026-11-21T09:00:00Z",
  model: 1,
  ends: true,
  total_ms: { low: 9_000, likely: 20_000, high: 30_000 },
  silence_ms: { low: 20, likely: 50, high: 90 },
  sent_bytes: null,
  inputs: {},
  corrected_by: {},
  happened: {
    ended: true,
    total_ms: 25_000,
    silence_ms: 100,
    sent_bytes: 1 << 30,
    others_total_ms: null,
    others_silence_ms: null,
  },
};

test("each figure stands next to what happened, and says whether the bounds held", () => {
  expect(compared(kept).map(({ what, said, came, right }) => [what, said, came, right])).toEqual([
    ["Ends by itself", "yes", "it did", true],
    ["Total time", "20 s (9.0 s to 30 s)", "25 s", true],
    ["Guest stands still", "50 ms (20 ms to 90 ms)", "100 ms", false],
  ]);
});

test("before the end, and of one that was helped, nothing is judged", () => {
  const running = compared({ ...kept, happened: null });
  expect(running.map(({ came, right }) => [came, right])).toEqual([
    ["not known yet", null],
    ["–", null],
    ["–", null],
  ]);
  const helped = compared({ ...kept, happened: { ...kept.happened, ended: null } as never })[0];
  expect([helped?.came, helped?.right]).toEqual(["cannot be told", null]);
  const unsure = compared({ ...kept, ends: null })[0];
  expect([unsure?.said, unsure?.came, unsure?.right]).toEqual(["it may not", "it did", null]);
});

test("one that was corrected says by how many records", () => {
  const said = compared({ ...kept, corrected_by: { total_time: 43, silence: 40 } });
  expect(said[0]?.when).toBe("before the migration, adjusted using 43 recorded migrations");
});

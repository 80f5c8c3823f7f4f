import { expect, test } from "vitest";
import { asStep, edited } from "./steps";

test.each([
  { when: { after_iterations: 4 }, then: { set: { downtime_limit_ms: "500" } } },
  { when: { after_s: 300 }, then: { do: "postcopy" } },
  { when: { stalled_s: 10, shrink_percent: 5 }, then: { do: "abort" } },
  { when: { stalled_s: 40, shrink_percent: 4, near_percent: 4 }, then: { do: "abort" } },
  { when: { later_s: 60 }, then: { do: "abort" } },
  {
    when: { after_s: 0 },
    then: { set: { downtime_limit_ms: "500", max_bandwidth_bytes_per_s: 125000000 } },
  },
])("a step that is only looked at stays what it was: %j", (step) => {
  expect(asStep(edited(step))).toEqual(step);
});

test("a shrink that belongs to another trigger is left out", () => {
  const step = edited({ when: { stalled_s: 10, shrink_percent: 5 }, then: { do: "abort" } });
  expect(asStep({ ...step, trigger: "after_s" }).when).toEqual({ after_s: 10 });
});

import { expect, test } from "vitest";
import type { Schemas } from "../api/client";
import { ends, errors, figures } from "./Forecasts";

const accuracy: Schemas["AccuracyView"] = {
  count: 20,
  median_error: 0.052,
  p90_error: 0.31,
  median_off: 400,
  p90_off: 2_000,
  within: 0.9,
  others_count: 12,
  others_median_error: 0.5,
  others_p90_error: 7.8,
};
const row: Schemas["ForecastCheckRow"] = {
  key: null,
  forecasts: 20,
  ends_known: 19,
  ends_right: 0.95,
  may_not: 2,
  total_time: accuracy,
  silence: null,
  bytes: null,
};

test("errors are told by their median and what 90 % are within", () => {
  expect(errors(accuracy.median_error, accuracy.p90_error)).toBe("5 %, 90 % within 31 %");
  expect(errors(null, null)).toBe("–");
});

test("only figures of which something is known are shown", () => {
  expect(figures(row).map(({ name }) => name)).toEqual(["Total time"]);
});

test("whether it was right that a migration ends is said with how often that is known", () => {
  expect(ends(row)).toBe(
    "20 forecasts; whether it ended by itself is known for 19, right for 95 %, 2 said that it may not.",
  );
  const one = { ...row, forecasts: 1, ends_known: 0, ends_right: null, may_not: 0 };
  expect(ends(one)).toBe("1 forecast; whether it ended by itself is known for none.");
});

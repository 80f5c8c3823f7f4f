import { expect, test } from "vitest";
import { said } from "./Metrics";

test("whether one run completed is no number", () => {
  const completed = { success: true, unit: "" } as const;
  expect([said(completed, 0), said(completed, 1)]).toEqual(["no", "yes"]);
  expect(said({ success: false, unit: "count" }, 1)).toBe("1");
});

import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { Downtime } from "./Downtime";

const TOTALS = { downtime_ms: 694 } as Schemas["TotalsView"];

test.each<[number | null, boolean, string]>([
  [200, true, "694 ms, limit 200 ms: exceeded"],
  [1000, false, "694 ms"],
  [null, false, "694 ms"],
])("with a limit of %s ms", (limit, exceeded, words) => {
  const migration = { totals: TOTALS, downtime_limit_ms: limit, downtime_exceeded: exceeded };
  render(<Downtime migration={migration} />);
  expect(screen.getByText(words)).toBeTruthy();
});

test("nothing is made up before its end", () => {
  const migration = { totals: null, downtime_limit_ms: null, downtime_exceeded: false };
  render(<Downtime migration={migration} />);
  expect(screen.getByText("–")).toBeTruthy();
});

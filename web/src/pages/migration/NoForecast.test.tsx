import { screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { rendered } from "../../test/rendered";
import { Forecasts } from "./Forecasts";

const answer = vi.hoisted(() => vi.fn());
vi.mock("../../api/forecasts", () => ({
  migrationForecasts: (id: string) => ({ queryKey: ["forecasts", id], queryFn: answer }),
}));

test("a migration without a forecast of before says why, and what helps", async () => {
  answer.mockResolvedValue({
    items: [],
    none_before: {
      field: "forecast",
      code: "c",
      message: "nobody measured it",
      remedy: "measure it",
    },
  });
  rendered(<Forecasts id="m" />);
  const said = "No forecast was made before the migration: nobody measured it. Measure it.";
  expect(await screen.findByText(said)).toBeVisible();
  expect(screen.queryByRole("grid")).toBeNull();
});

test("the forecasts of a steered migration say that they assume none", async () => {
  const kept = {
    basis: "before",
    ends: true,
    total_ms: { low: 1000, likely: 2000, high: 3000 },
    silence_ms: null,
    sent_bytes: null,
    corrected_by: {},
    happened: null,
  };
  answer.mockResolvedValue({ items: [kept], none_before: null });
  rendered(<Forecasts id="m" steered />);
  expect(await screen.findByText(/assume no steering/)).toBeVisible();
});

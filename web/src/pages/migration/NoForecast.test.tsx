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

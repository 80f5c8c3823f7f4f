import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { rendered } from "../../test/rendered";
import { Tuning } from "./Tuning";

const TUNING = {
  state: "drifted" as const,
  profile: "fast",
  revision: 2,
  application: "x",
  differing: ["multifd", "downtime_limit_ms"],
  as_of: "2026-11-21T09:00:00Z",
  since: "2026-11-21T08:00:00Z",
};
const acts = { again: vi.fn(), apply: vi.fn() };

test("a drifted VM says what differs, and is mended there", async () => {
  const vm = { tuning: TUNING, tuning_state: "drifted" as const };
  rendered(<Tuning vm={vm} winner="fast" reason="its own" {...acts} />);
  expect(screen.getByText(/Drifted from fast r2: multifd, downtime_limit_ms/)).toBeInTheDocument();
  await userEvent.click(screen.getByRole("button", { name: "Re-apply" }));
  expect(acts.again).toHaveBeenCalled();
});

test("an untuned VM says whether a profile is assigned", async () => {
  const vm = { tuning: null, tuning_state: "untuned" as const };
  const { again } = rendered(<Tuning vm={vm} winner={null} reason="nothing fits" {...acts} />);
  expect(screen.getByText(/no profile is assigned/)).toBeInTheDocument();
  expect(screen.getByText("nothing fits")).toBeInTheDocument();
  again(<Tuning vm={vm} winner="fast" reason="its own" {...acts} />);
  expect(screen.getByText(/fast is assigned, and was not applied/)).toBeInTheDocument();
  await userEvent.click(screen.getByRole("button", { name: "Apply" }));
  expect(acts.apply).toHaveBeenCalled();
});

test("a tuned VM needs no words", () => {
  const vm = { tuning: { ...TUNING, state: "tuned" as const }, tuning_state: "tuned" as const };
  rendered(<Tuning vm={vm} winner="fast" reason="its own" {...acts} />);
  expect(screen.queryByRole("heading")).toBeNull();
  expect(screen.queryByRole("button")).toBeNull();
});

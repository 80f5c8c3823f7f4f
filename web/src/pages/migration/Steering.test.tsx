import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { rendered } from "../../test/rendered";
import { Steering } from "./Steering";

const step = (part: Partial<Schemas["StepRecordView"]>): Schemas["StepRecordView"] => ({
  number: null,
  at_ms: 4500,
  iteration: 3,
  action: "set downtime_limit_ms to 300 ms",
  reason: "it would not end",
  effect: "done",
  detail: "",
  forecast: "ends in about 2 s",
  steering: true,
  values: { downtime_limit_ms: 500 },
  of_copies: false,
  ...part,
});

test("each action comes with its time, reason and forecast", () => {
  const records = [step({}), step({ action: "abort", effect: "refused", detail: "QEMU says no" })];
  rendered(<Steering records={records} shadow={false} ended />);
  const [first, second] = screen.getAllByRole("listitem");
  expect(first).toHaveTextContent("4.5 s: set downtime_limit_ms to 300 ms");
  expect(first).toHaveTextContent("it would not end; expected: ends in about 2 s");
  expect(first).not.toHaveTextContent("done:");
  expect(second).toHaveTextContent("refused: QEMU says no");
});

test("a throttle is told as one figure", () => {
  const throttle = {
    cpu_throttle_initial_percent: 65,
    cpu_throttle_increment_percent: 65,
    max_cpu_throttle_percent: 65,
  };
  const held = { max_cpu_throttle_percent: 1 };
  const unlike = { ...throttle, cpu_throttle_increment_percent: 10 };
  const more = { ...throttle, max_bandwidth_bytes_per_s: 1 };
  const records = [{ ...throttle, downtime_limit_ms: 286 }, throttle, held, unlike, more].map(
    (values) => step({ action: "as recorded", values }),
  );
  rendered(<Steering records={records} shadow={false} ended />);
  const told = screen.getAllByRole("listitem").map((each) => each.textContent);
  expect(told.map((text) => text?.replaceAll("\u00a0", " ").match(/: (.*?)it would/)?.[1])).toEqual(
    [
      "set downtime_limit_ms to 286 ms and throttle the guest by 65 %",
      "throttle the guest by 65 %",
      "as recorded",
      "as recorded",
      "as recorded",
    ],
  );
});

test("in shadow mode it is told that nothing of it was done", () => {
  rendered(
    <Steering records={[step({ effect: "refused", detail: "shadow mode" })]} shadow ended />,
  );
  expect(screen.getByText("What steering would have done")).toBeVisible();
  const [only] = screen.getAllByRole("listitem");
  expect(only).toHaveAccessibleName("not done");
  expect(only).not.toHaveTextContent("refused");
});

test("nothing done is said", () => {
  rendered(<Steering records={[]} shadow={false} ended={false} />);
  expect(screen.getByText("Nothing had to be done yet.")).toBeVisible();
});

import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { rendered } from "../../test/rendered";
import { Intent, promised } from "./Intent";

const intent: Schemas["StatedIntentView"] = {
  stated: { max_silence_ms: 500, deadline_s: 30 },
  text: "silence of at most 500 ms, within 30 s",
  chosen: {},
  pinned: [],
  shadow: false,
  steered_until_ms: null,
  forecast: "kept",
  goals: [
    { goal: "max_silence_ms", bound: 500, measured: 3014, kept: false, by: "qemu" },
    { goal: "deadline_s", bound: 30, measured: 18.7, kept: true, by: "qemu" },
  ],
};

test("each goal says what it took, what was allowed, and whether that was kept", () => {
  rendered(<Intent intent={intent} state="completed" />);
  expect(screen.getByText("silence of at most 500 ms, within 30 s")).toBeVisible();
  expect(screen.getByText("3.01 s, at most 500 ms: exceeded")).toBeVisible();
  expect(screen.getByText("18.7 s, at most 30 s: kept")).toBeVisible();
});

test("promised and kept are one line", () => {
  const asked = "silence of at most 500 ms, within 30 s";
  expect(promised(intent, "completed")).toBe(`Promised: ${asked}; not kept: 3.01 s, 18.7 s.`);
  const goals = intent.goals.map((goal) => ({ ...goal, kept: true, measured: 5 }));
  expect(promised({ ...intent, goals }, "completed")).toBe(`Promised: ${asked}; kept: 5 ms, 5 s.`);
  expect(promised({ ...intent, goals: [] }, "active")).toBe(`Promised: ${asked}.`);
  expect(promised({ ...intent, goals: [] }, "cancelled")).toContain("given up");
  expect(promised({ ...intent, goals, shadow: true }, "completed")).toBe(
    `Shadow mode: ${asked} was not promised; without steering kept: 5 ms, 5 s.`,
  );
});

test("a slowdown says by what it is known, and what is not known is not claimed", () => {
  const slowed = (measured: number | null): Schemas["GoalKeptView"] => ({
    ...{ goal: "max_slowdown_percent", bound: 20, measured },
    ...{ kept: measured === null ? null : true, by: measured === null ? "unknown" : "throttle" },
  });
  const stated = { max_slowdown_percent: 20 };
  rendered(<Intent intent={{ ...intent, stated, goals: [slowed(15)] }} state="completed" />);
  expect(screen.getByText("15 % by the hardest throttle, at most 20 %: kept")).toBeVisible();
  const unknown = { ...intent, stated, goals: [slowed(null)] };
  expect(promised(unknown, "completed")).toBe(
    "Promised: slowdown of at most 20 %; kept as far as is known: not known.",
  );
});

test("choices come with their reasons, and what is pinned is named", () => {
  const chosen = { downtime_limit_ms: "begins low" };
  rendered(<Intent intent={{ ...intent, chosen, pinned: ["multifd"] }} state="active" />);
  expect(screen.getByText(/begins low/)).toBeVisible();
  expect(screen.getByText("multifd")).toBeVisible();
});

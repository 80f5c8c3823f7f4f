import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { rendered } from "../../test/rendered";
import { Intent } from "./Intent";

const intent: Schemas["StatedIntentView"] = {
  stated: { max_silence_ms: 500, deadline_s: 30 },
  text: "silence of at most 500 ms, within 30 s",
  chosen: {},
  pinned: [],
  shadow: false,
  forecast: "kept",
  goals: [
    { goal: "max_silence_ms", bound: 500, measured: 3014, kept: false },
    { goal: "deadline_s", bound: 30, measured: 18.7, kept: true },
  ],
};

test("each goal says what it took, what was allowed, and whether that was kept", () => {
  rendered(<Intent intent={intent} />);
  expect(screen.getByText("silence of at most 500 ms, within 30 s")).toBeVisible();
  expect(screen.getByText("3.01 s, at most 500 ms: exceeded")).toBeVisible();
  expect(screen.getByText("18.7 s, at most 30 s: kept")).toBeVisible();
});

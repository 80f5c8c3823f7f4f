import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, test } from "vitest";
import type { ProblemItem } from "../../api/client";
import { rendered } from "../../test/rendered";
import { IntentSection } from "../migration/IntentSection";
import { NO_INTENT, stated } from "./intent";

function Trial({ problems = [] }: { problems?: readonly ProblemItem[] }) {
  const [typed, setTyped] = useState(NO_INTENT);
  return (
    <>
      <IntentSection id="x" typed={typed} change={setTyped} problems={problems} />
      <output>{JSON.stringify(stated(typed))}</output>
    </>
  );
}

const said = () => JSON.parse(screen.getByRole("status").textContent ?? "");

test("goals, means and the order in which goals are given up", async () => {
  rendered(<Trial />);
  expect(screen.queryByLabelText("Within")).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: /By intent/ }));
  await userEvent.type(screen.getByLabelText("Within"), "2min");
  await userEvent.type(screen.getByLabelText("Silence at most"), "500ms");
  expect(said()).toEqual({ deadline_s: "2min", max_silence_ms: "500ms" });
  await userEvent.click(screen.getByLabelText("Post-copy"));
  await userEvent.selectOptions(screen.getByLabelText("If it cannot be kept"), "relax");
  await userEvent.click(screen.getByRole("checkbox", { name: "Within" }));
  await userEvent.click(screen.getByRole("checkbox", { name: "Silence at most" }));
  expect(said()).toMatchObject({
    may: ["postcopy", "compress", "zero_copy"],
    otherwise: "relax",
    relax: ["deadline_s", "max_silence_ms"],
  });
  expect(screen.getByRole("checkbox", { name: "Within (1)" })).toBeChecked();
});

test("each problem is told at its field, and the rest below", async () => {
  const problem = (field: string, message: string) => ({ field, code: "c", message, remedy: "" });
  rendered(
    <Trial
      problems={[
        problem("intent.deadline_s", "no such unit"),
        problem("intent.may", "they contradict"),
        problem("values.multifd", "not this one"),
      ]}
    />,
  );
  await userEvent.click(screen.getByRole("button", { name: /By intent/ }));
  expect(screen.getByLabelText("Within")).toHaveAccessibleDescription(/no such unit/);
  expect(screen.getByText("they contradict")).toBeVisible();
  expect(screen.queryByText("not this one")).toBeNull();
});

import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { rendered } from "../../test/rendered";
import { VmStanding } from "./VmStanding";

const VM = {
  state: "running",
  migration: "m",
  migration_state: "active",
  migrating: true,
} as const;

test("one that migrates is what its host says, with its migration", () => {
  rendered(<VmStanding vm={VM} />);
  expect(screen.getByText("running")).toBeVisible();
  expect(screen.getByRole("link", { name: "migrating" })).toHaveAttribute("href", "/migrations/m");
});

test("one that is paused in post-copy does not look as if it ran", () => {
  rendered(<VmStanding vm={{ ...VM, migration_state: "postcopy-paused" }} />);
  expect(screen.getByText("post-copy is paused")).toBeVisible();
  expect(screen.queryByText("running")).toBeNull();
  expect(screen.queryByText("migrating")).toBeNull();
  expect(screen.getByRole("link")).toHaveAttribute("href", "/migrations/m");
});

test("one that migrates without vmtune has no link", () => {
  rendered(<VmStanding vm={{ ...VM, migration: null, migration_state: null }} />);
  expect(screen.getByText("running")).toBeVisible();
  expect(screen.getByText("migrating")).toBeVisible();
  expect(screen.queryByRole("link")).toBeNull();
});

import { screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { rendered } from "../../test/rendered";
import { VmStanding } from "./VmStanding";

const asked = vi.hoisted(() => ({ GET: vi.fn() }));

vi.mock("../../api/client", async (original) => ({
  ...(await original<typeof import("../../api/client")>()),
  client: asked,
}));

const VM = { state: "running", migration: "m", migrating: true } as const;

test("one that migrates is what its host says, with its migration", async () => {
  asked.GET.mockResolvedValue({ data: { id: "m", state: "active" } });
  rendered(<VmStanding vm={VM} />);
  expect(await screen.findByText("running")).toBeVisible();
  expect(screen.getByRole("link", { name: "migrating" })).toHaveAttribute("href", "/migrations/m");
});

test("one that is paused in post-copy does not look as if it ran", async () => {
  asked.GET.mockResolvedValue({ data: { id: "m", state: "postcopy-paused" } });
  rendered(<VmStanding vm={VM} />);
  expect(await screen.findByText("post-copy is paused")).toBeVisible();
  expect(screen.queryByText("running")).toBeNull();
  expect(screen.queryByText("migrating")).toBeNull();
  expect(screen.getByRole("link")).toHaveAttribute("href", "/migrations/m");
});

test("one without a migration of vmtune's asks for none", () => {
  asked.GET.mockReset();
  rendered(<VmStanding vm={{ ...VM, migration: null, migrating: false }} />);
  expect(screen.getByText("running")).toBeVisible();
  expect(asked.GET).not.toHaveBeenCalled();
});

import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import * as actions from "../../api/actions";
import { ApiError } from "../../api/client";
import { rendered } from "../../test/rendered";
import { application, finding, outcome, plan } from "../../test/vms";
import { ApplyDialog, leavable } from "./ApplyDialog";
import { asWanted } from "./asWanted";

vi.mock("../../api/actions");
vi.mock("../../components/forms/ProfileChoice", () => ({ ProfileChoice: () => null }));
vi.mock("../../components/labels/TunableName", () => ({
  TunableName: ({ name }: { name: string }) => name,
}));

const planVm = vi.mocked(actions.planVm);
const applyTo = vi.mocked(actions.applyTo);
const close = vi.fn();
const open = () => rendered(<ApplyDialog vm="v" name="db1" close={close} />);
const button = () => screen.getByRole("button", { name: "Apply" });

beforeEach(() => {
  vi.resetAllMocks();
  planVm.mockResolvedValue(plan());
});

test("the plan comes first, and nothing is applied by it", async () => {
  open();
  expect(button()).toBeDisabled();
  expect(await screen.findByText("fast r3: 1 value would change.")).toBeVisible();
  expect(screen.getByRole("grid", { name: "Plan" })).toHaveTextContent("300 ms");
  expect(screen.queryByText("multifd")).toBeNull();
  expect(button()).toBeEnabled();
  expect(applyTo).not.toHaveBeenCalled();
});

test("what went well is told, and the dialog closes", async () => {
  applyTo.mockResolvedValue(application());
  open();
  await screen.findByText("fast r3: 1 value would change.");
  await userEvent.click(button());
  expect(await screen.findByText("fast was applied to db1")).toBeVisible();
  expect(screen.getByText("1 of 1 settings are effective")).toBeVisible();
  expect(close).toHaveBeenCalled();
  expect(applyTo).toHaveBeenCalledWith("v", { best_effort: false });
});

test("an application that failed never looks like one that went well", async () => {
  const problem = { field: "x", code: "refused", message: "QEMU said no", remedy: "try less" };
  applyTo.mockResolvedValue(application({ state: "failed", problems: [problem] }));
  open();
  await screen.findByText("fast r3: 1 value would change.");
  await userEvent.click(button());
  expect(await screen.findByText(/fast was not applied to db1/)).toBeVisible();
  expect(screen.getByText(/All values were restored/)).toBeVisible();
  expect(screen.getByText(/QEMU said no/)).toBeVisible();
  expect(screen.getByText("Try less")).toBeVisible();
  expect(close).not.toHaveBeenCalled();
});

test("a blocker stops it, unless all of them can be left out", async () => {
  planVm.mockResolvedValue(
    plan({ blockers: ["vm_gone"], findings: [finding("blocker", null, "vm_gone")] }),
  );
  open();
  expect(await screen.findByText(/vm_gone stands/i)).toBeVisible();
  expect(screen.getByText("Mend it")).toBeVisible();
  expect(button()).toBeDisabled();
  expect(screen.queryByRole("checkbox")).toBeNull();
});

test("what is refused is left out only where that was asked for", async () => {
  planVm.mockResolvedValue(
    plan({ blockers: ["no_ring"], findings: [finding("blocker", "multifd", "no_ring")] }),
  );
  applyTo.mockResolvedValue(application());
  open();
  const leave = await screen.findByRole("checkbox", { name: /Skip refused values/ });
  expect(button()).toBeDisabled();
  await userEvent.click(leave);
  await userEvent.click(button());
  await waitFor(() => expect(applyTo).toHaveBeenCalledWith("v", { best_effort: true }));
});

test("a conflict is told with its remedy, and can be tried again", async () => {
  const busy = { field: "vm", code: "in_progress", message: "it migrates", remedy: "wait" };
  applyTo.mockRejectedValueOnce(new ApiError(409, "it migrates", [busy]));
  applyTo.mockResolvedValueOnce(application());
  open();
  await screen.findByText("fast r3: 1 value would change.");
  await userEvent.click(button());
  expect(await screen.findByText("wait")).toBeVisible();
  await userEvent.click(button());
  await waitFor(() => expect(close).toHaveBeenCalled());
});

test("without any profile there is nothing to apply", async () => {
  planVm.mockResolvedValue(plan({ profile: null, revision: null, items: [] }));
  open();
  expect(await screen.findByText(/No profile is assigned/)).toBeVisible();
  expect(button()).toBeDisabled();
});

test("as wanted is what is effective or waits", () => {
  const waits = [outcome("a", "effective"), outcome("b", "pending restart")];
  expect(asWanted(application({ outcomes: waits }))).toBe(true);
  expect(asWanted(application({ outcomes: [...waits, outcome("c", "rejected")] }))).toBe(false);
  expect(asWanted(application({ state: "unknown", outcomes: [] }))).toBe(false);
});

test("a warning is nothing to leave out", () => {
  expect(leavable(plan({ findings: [finding("warning", "multifd")] }))).toBe(false);
  expect(leavable(undefined)).toBe(false);
});

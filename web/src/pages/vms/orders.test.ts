import { beforeEach, expect, test, vi } from "vitest";
import * as actions from "../../api/actions";
import { ApiError } from "../../api/client";
import * as tuning from "../../api/tuning";
import { application, outcome, vmRow } from "../../test/vms";
import { workOf } from "./orders";

vi.mock("../../api/actions");
vi.mock("../../api/tuning");

const again = workOf({ kind: "apply", profile: "", bestEffort: false });
const drifted = vmRow("web1", {
  tuning: {
    state: "drifted",
    profile: "fast",
    revision: 2,
    application: "x",
    differing: ["multifd"],
    as_of: "2026-11-21T09:00:00Z",
    since: "2026-11-21T09:00:00Z",
  },
});

beforeEach(() => {
  vi.resetAllMocks();
  vi.mocked(actions.applyTo).mockResolvedValue(application());
});

test("a VM gets the revision again that it was compared with", async () => {
  expect((await again(drifted)).verdict).toBe("done");
  expect(actions.applyTo).toHaveBeenCalledWith("web1", {
    profile: "fast",
    revision: 2,
    best_effort: false,
  });
  await workOf({ kind: "apply", profile: "other", bestEffort: true })(drifted);
  expect(actions.applyTo).toHaveBeenLastCalledWith("web1", { profile: "other", best_effort: true });
});

test("what is not effective differs, and what failed is told with its reason", async () => {
  vi.mocked(actions.applyTo).mockResolvedValue(
    application({ outcomes: [outcome("multifd", "rejected")] }),
  );
  expect(await again(drifted)).toMatchObject({ verdict: "differs", text: "multifd rejected" });
  const problem = { field: "x", code: "refused", message: "QEMU said no", remedy: "" };
  vi.mocked(actions.applyTo).mockResolvedValue(
    application({ state: "failed", problems: [problem] }),
  );
  expect(await again(drifted)).toMatchObject({ verdict: "failed", text: "QEMU said no" });
});

test("nobody's answer is unknown, no profile and no guest are skipped", async () => {
  vi.mocked(actions.applyTo).mockRejectedValue(new ApiError(0, "the service does not answer"));
  expect((await again(drifted)).verdict).toBe("unknown");
  const none = { field: "vm", code: "no_profile", message: "none", remedy: "" };
  vi.mocked(actions.applyTo).mockRejectedValue(new ApiError(409, "none", [none]));
  expect((await again(drifted)).verdict).toBe("skipped");
  expect(await again(vmRow("off", { state: "shut off" }))).toEqual({
    verdict: "skipped",
    text: "it is shut off",
  });
});

test("labels are added to those that each VM has", async () => {
  vi.mocked(tuning.setLabels).mockResolvedValue({ uuid: "a", labels: { tier: "db" } });
  const work = workOf({ kind: "label", changes: { tier: "db", old: null } });
  await work(vmRow("a", { labels: { old: "1", zone: "a" }, state: "shut off" }));
  expect(tuning.setLabels).toHaveBeenCalledWith("a", { zone: "a", tier: "db" });
});

test("a VM's own assignment is replaced, and not added a second time", async () => {
  const own = { id: 7, target: "vm" as const, key: "a", profile: "old" };
  vi.mocked(tuning.explainVm).mockResolvedValue({ candidates: [own] } as never);
  const result = await workOf({ kind: "assign", profile: "fast", intent: null })(vmRow("a"));
  expect(result).toEqual({ verdict: "done", text: "instead of old" });
  expect(actions.removeAssignment).toHaveBeenCalledWith(7);
  expect(actions.addAssignment).toHaveBeenCalledWith({ target: "vm", key: "a", profile: "fast" });
  const same = workOf({ kind: "assign", profile: "old", intent: null });
  expect((await same(vmRow("a"))).verdict).toBe("skipped");
});

const stated = { max_silence_ms: 200, may: ["compress"], otherwise: "refuse" };
const gentle = {
  ...{ id: 7, target: "vm" as const, key: "a", profile: "old" },
  intent: { stated, text: "silence at most 200 ms" },
};

test("an assignment keeps its intent under another profile, unless one is stated", async () => {
  vi.mocked(tuning.explainVm).mockResolvedValue({ candidates: [gentle] } as never);
  const kept = await workOf({ kind: "assign", profile: "fast", intent: null })(vmRow("a"));
  expect(kept).toEqual({ verdict: "done", text: "instead of old, with its intent" });
  const asked = { target: "vm", key: "a", profile: "fast" };
  expect(actions.addAssignment).toHaveBeenLastCalledWith({ ...asked, intent: stated });
  const other = { deadline_s: "2 min" };
  await workOf({ kind: "assign", profile: "fast", intent: other })(vmRow("a"));
  expect(actions.addAssignment).toHaveBeenLastCalledWith({ ...asked, intent: other });
  const same = workOf({ kind: "assign", profile: "old", intent: other });
  expect((await same(vmRow("a"))).verdict).toBe("done");
});

test("an assignment comes back where its successor is refused", async () => {
  vi.mocked(tuning.explainVm).mockResolvedValue({ candidates: [gentle] } as never);
  vi.mocked(actions.addAssignment).mockRejectedValueOnce(new ApiError(422, "no such unit"));
  const work = workOf({ kind: "assign", profile: "fast", intent: { deadline_s: "1 parsec" } });
  expect((await work(vmRow("a"))).verdict).toBe("failed");
  const back = { target: "vm", key: "a", profile: "old", intent: stated };
  expect(actions.addAssignment).toHaveBeenLastCalledWith(back);
});

test("a VM that migrates or is there is not migrated", async () => {
  const work = workOf({ kind: "migrate", intent: null, destination: "b", profile: "" });
  expect((await work(vmRow("a", { host: "b" }))).verdict).toBe("skipped");
  expect(await work(vmRow("a", { migration: "m" }))).toMatchObject({ to: "/migrations/m" });
  expect(actions.startMigration).not.toHaveBeenCalled();
});

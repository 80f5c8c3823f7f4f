import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import * as actions from "../../api/actions";
import { ApiError, type Schemas } from "../../api/client";
import { rendered } from "../../test/rendered";
import { finding, plan } from "../../test/vms";
import { MigrateDialog } from "./MigrateDialog";

const assigned = vi.hoisted(() => ({ winner: null as object | null }));

vi.mock("../../api/actions");
vi.mock("../../api/queries", () => {
  const list = (key: string, items: unknown[]) => ({
    queryKey: [key],
    queryFn: () => ({ items, next: null }),
    initialPageParam: undefined,
    getNextPageParam: () => null,
  });
  return {
    hosts: list("hosts", [{ name: "a" }, { name: "b" }]),
    profiles: list("profiles", [{ name: "gently" }, { name: "plain" }]),
    profile: (name: string) => ({
      queryKey: ["profile", name],
      queryFn: () => ({
        intent:
          name === "gently"
            ? { text: "silence at most 1 s", stated: { max_silence_ms: 1000 } }
            : null,
      }),
    }),
    explanation: (vm: string) => ({
      queryKey: ["explanation", vm],
      queryFn: () => ({ winner: assigned.winner }),
    }),
    tunables: { queryKey: ["tunables"], queryFn: () => [] },
  };
});

const planVm = vi.mocked(actions.planVm);
const start = vi.mocked(actions.startMigration);
const DISK = {
  target: "vda",
  path: "/images/a",
  format: "raw",
  capacity_bytes: 2 ** 32,
  allocated_bytes: 2 ** 31,
};

beforeEach(() => {
  vi.resetAllMocks();
  assigned.winner = null;
});

async function to(destination: string) {
  rendered(<MigrateDialog vm="v" name="db1" host="a" close={() => {}} />);
  await screen.findByRole("option", { name: destination });
  await userEvent.selectOptions(screen.getByLabelText(/Destination/), destination);
}

test("where a disk is local its copy is offered, planned and ordered", async () => {
  const blocker = finding("blocker", null, "disk_missing");
  planVm.mockImplementation(async (_vm, what) =>
    what.values?.copy_storage
      ? plan({ disks: [DISK] })
      : plan({ blockers: ["disk_missing"], findings: [blocker] }),
  );
  start.mockResolvedValue({ id: "m" } as Awaited<ReturnType<typeof start>>);
  await to("b");
  const copy = await screen.findByLabelText("Copy local disks to the destination");
  expect(screen.getByRole("button", { name: "Migrate" })).toBeDisabled();
  await userEvent.click(copy);
  await userEvent.click(screen.getByLabelText("The guest's writes wait for the destination"));
  await userEvent.click(screen.getByLabelText("Remove the source's images afterwards"));
  expect(await screen.findByText(/vda: \/images\/a, 2 GiB of 4 GiB/)).toBeVisible();
  const button = screen.getByRole("button", { name: "Migrate" });
  await waitFor(() => expect(button).toBeEnabled());
  await userEvent.click(button);
  expect(start.mock.calls[0]?.[0]).toMatchObject({
    vm: "v",
    destination: "b",
    overrides: [],
    values: {
      copy_storage: true,
      copy_synchronous_writes: true,
      copy_source_images: "remove",
    },
  });
});

test("disks, a bandwidth and the top images alone can be chosen", async () => {
  const disks = [DISK, { ...DISK, target: "vdb", path: "/images/b" }];
  planVm.mockImplementation(async (_vm, what) => {
    const only = what.values?.copy_disks;
    return plan({
      connection: "qmp",
      disks: disks.filter((each) => !only || String(only).split(",").includes(each.target)),
    });
  });
  start.mockResolvedValue({ id: "m" } as Awaited<ReturnType<typeof start>>);
  await to("b");
  await userEvent.click(await screen.findByLabelText("Copy local disks to the destination"));
  const [vda, vdb] = [/vda: \/images\/a/, /vdb: \/images\/b/];
  await userEvent.click(await screen.findByLabelText(vda));
  expect(await screen.findByLabelText(vda)).not.toBeChecked();
  expect(screen.getByLabelText(vdb)).toBeDisabled(); // one has to be left
  await userEvent.click(screen.getByLabelText("Only the image on top of each chain"));
  await userEvent.type(screen.getByLabelText("Bandwidth of each copy"), " 60 MiB/s{Enter}");
  expect(start).not.toHaveBeenCalled();
  const button = screen.getByRole("button", { name: "Migrate" });
  await waitFor(() => expect(button).toBeEnabled());
  await userEvent.click(button);
  expect(start.mock.calls[0]?.[0].values).toEqual({
    copy_storage_incremental: true,
    copy_disks: "vdb",
    copy_bandwidth_bytes_per_s: "60 MiB/s",
  });
});

test("what only a migration has a value of is told, whatever the profile", async () => {
  const copy: Schemas["PlanItemView"] = {
    tunable: "copy_storage",
    wanted: { value: true, text: "on" },
    current: { value: null, text: "unknown", parts: {}, part_texts: {}, why_unknown: "" },
    route: "migrate",
    side: "source",
    takes_effect: "at the next migration",
    overwriter: "",
    differs: false,
  };
  planVm.mockResolvedValue(plan({ profile: null, revision: null, items: [copy] }));
  await to("b");
  expect(await screen.findByRole("grid", { name: "Of the migration" })).toHaveTextContent(
    "copy_storage",
  );
  expect(screen.queryByText(/no changes/)).toBeNull();
});

test("where all disks are shared nothing is offered", async () => {
  planVm.mockResolvedValue(plan());
  await to("b");
  expect(await screen.findByText("700 ms")).toBeVisible();
  expect(screen.queryByLabelText("Copy local disks to the destination")).toBeNull();
});

test("without libvirt, whose preflight sees the disks, it is always offered", async () => {
  planVm.mockResolvedValue(plan({ connection: "qmp" }));
  await to("b");
  expect(await screen.findByLabelText("Copy local disks to the destination")).not.toBeChecked();
  expect(
    screen.getByText(/The waiting destination QEMU must already have an image for each disk/),
  ).toBeVisible();
});

const judged = (part: Partial<Schemas["IntentPlanView"]> = {}): Schemas["IntentPlanView"] => ({
  stated: { max_silence_ms: 500, deadline_s: 60, may: ["compress"] },
  text: "silence at most 500 ms, within 60 s",
  choices: [
    {
      tunable: "downtime_limit_ms",
      value: { value: 95, text: "95 ms" },
      reason: "begins low",
    },
  ],
  pinned: [],
  forecast: "will be kept: expected to end after 12 s",
  kept: true,
  refused: false,
  nearest: [],
  runs: 2,
  history: ["0000000a-x", "0000000b-y"],
  ...part,
});

/** The intent that was last judged. */
const asked = () => planVm.mock.calls.findLast((call) => call[1].intent)?.[1].intent;

test("what cannot be kept is told with the nearest, which a button takes", async () => {
  const deadline = { max_silence_ms: 500, deadline_s: 95, may: ["compress"], otherwise: "refuse" };
  planVm.mockImplementation(async (_vm, what) => {
    if (!what.intent) return plan({ profile: null });
    if (what.intent.deadline_s === "95 s") return plan({ intent: judged() });
    return plan({
      intent: judged({
        forecast: "is not expected to be kept: it takes about 90 s",
        kept: false,
        refused: true,
        nearest: [
          { difference: "a deadline of 95 s", intent: deadline },
          { difference: "postcopy allowed", intent: { ...judged().stated, may: ["postcopy"] } },
        ],
      }),
    });
  });
  start.mockResolvedValue({ id: "m" } as Awaited<ReturnType<typeof start>>);
  await to("b");
  await userEvent.click(screen.getByRole("button", { name: /By intent/ }));
  await userEvent.type(screen.getByLabelText("Silence at most"), "500ms");
  await userEvent.type(screen.getByLabelText("Within"), "60");
  expect(asked()).toBeUndefined();
  await userEvent.click(await screen.findByRole("button", { name: "Can it be kept?" }));
  expect(await screen.findByText(/takes about 90 s. It would be refused/)).toBeVisible();
  expect(asked()).toEqual({ max_silence_ms: "500ms", deadline_s: "60" });
  expect(screen.getByRole("button", { name: "Allow post-copy" })).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Take within 95 s" }));
  expect(await screen.findByText(/Will be kept/)).toBeVisible();
  expect(screen.getByText(/No profile is assigned: the intent alone chooses/)).toBeVisible();
  expect(screen.getByLabelText("Within")).toHaveValue("95 s");
  expect(screen.getByRole("row", { name: /downtime_limit_ms 95\sms begins low/ })).toBeVisible();
  expect(screen.getByText(/2 earlier migrations/)).toBeVisible();
  expect(screen.getByRole("link", { name: "0000000b" })).toHaveAttribute(
    "href",
    "/migrations/0000000b-y",
  );
  await userEvent.click(screen.getByLabelText("Shadow mode"));
  expect(screen.getByText(/No profile is assigned: no changes/)).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Migrate" }));
  expect(start.mock.calls[0]?.[0]).toMatchObject({
    intent: { max_silence_ms: "500 ms", deadline_s: "95 s", may: ["compress"] },
    shadow: true,
  });
});

test("its profile's intent counts where none is typed, and is not ordered twice", async () => {
  planVm.mockImplementation(async (_vm, what) =>
    plan({ profile: "gently", ...(what.intent ? { intent: judged() } : {}) }),
  );
  start.mockResolvedValue({ id: "m" } as Awaited<ReturnType<typeof start>>);
  await to("b");
  expect(await screen.findByText("Of its profile: silence at most 1 s.")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Can it be kept?" }));
  expect(await screen.findByText(/Will be kept/)).toBeVisible();
  expect(asked()).toEqual({ max_silence_ms: 1000 });
  await userEvent.click(screen.getByRole("button", { name: "Migrate" }));
  expect(start.mock.calls[0]?.[0]).not.toHaveProperty("intent");
});

test.each(["gently", "plain"])(
  "its assignment's intent counts instead of that of the profile %s",
  async (name) => {
    const intent = { text: "silence at most 200 ms", stated: { max_silence_ms: 200 } };
    assigned.winner = { profile: name, intent };
    planVm.mockImplementation(async (_vm, what) =>
      plan({ profile: what.profile ?? name, ...(what.intent ? { intent: judged() } : {}) }),
    );
    start.mockResolvedValue({ id: "m" } as Awaited<ReturnType<typeof start>>);
    await to("b");
    expect(await screen.findByText("Of its assignment: silence at most 200 ms.")).toBeVisible();
    expect(screen.queryByText(/Of its profile/)).toBeNull();
    await userEvent.click(screen.getByRole("button", { name: "Can it be kept?" }));
    expect(await screen.findByText(/Will be kept/)).toBeVisible();
    expect(asked()).toEqual({ max_silence_ms: 200 });
    // A profile that is chosen brings its own intent, or none.
    await userEvent.selectOptions(screen.getByLabelText("Profile"), "gently");
    expect(await screen.findByText("Of its profile: silence at most 1 s.")).toBeVisible();
    await userEvent.selectOptions(screen.getByLabelText("Profile"), "plain");
    await waitFor(() => expect(screen.queryByText(/^Of its/)).toBeNull());
    expect(screen.queryByLabelText("Shadow mode")).toBeNull();
    await userEvent.selectOptions(screen.getByLabelText("Profile"), "");
    await userEvent.click(await screen.findByLabelText("Shadow mode"));
    await userEvent.click(screen.getByRole("button", { name: "Migrate" }));
    const ordered = start.mock.calls[0]?.[0];
    expect(ordered).not.toHaveProperty("intent");
    expect(ordered).toMatchObject({ shadow: true });
  },
);

test("a refused start shows what can be kept instead", async () => {
  planVm.mockImplementation(async (_vm, what) =>
    plan({ profile: null, ...(what.intent ? { intent: judged({ kept: false }) } : {}) }),
  );
  const problem = { field: "intent", code: "intent_infeasible", message: "no", remedy: "" };
  start.mockRejectedValue(new ApiError(409, "the intent cannot be kept", [problem]));
  await to("b");
  await userEvent.click(screen.getByRole("button", { name: /By intent/ }));
  await userEvent.type(screen.getByLabelText("Within"), "60");
  await userEvent.click(screen.getByRole("button", { name: "Migrate" }));
  expect(await screen.findByRole("grid", { name: "Chosen settings" })).toBeVisible();
});

test("an override is offered where it lifts the blocker, and nowhere else", async () => {
  const looked = finding("blocker", "copy_storage", "copy_may_overwrite");
  const final = { ...finding("blocker", "copy_storage", "copy_onto_itself"), overridable: false };
  planVm.mockResolvedValue(
    plan({ blockers: [looked.code, final.code], findings: [looked, final] }),
  );
  await to("b");
  await userEvent.click(await screen.findByLabelText("Override copy_may_overwrite"));
  expect(screen.queryByLabelText("Override copy_onto_itself")).toBeNull();
  expect(screen.getByRole("button", { name: "Migrate" })).toBeDisabled();
});

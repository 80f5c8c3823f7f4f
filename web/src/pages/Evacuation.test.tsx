import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Route, Routes } from "react-router";
import { beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../api/client";
import { type Asked, evacuationProgress } from "../api/evacuations";
import type { LiveEvent } from "../api/live";
import { rendered } from "../test/rendered";
import Evacuation from "./Evacuation";
import EvacuationPlan from "./EvacuationPlan";

const asked = vi.hoisted(() => ({ GET: vi.fn(), POST: vi.fn(), PUT: vi.fn(), DELETE: vi.fn() }));
const live = vi.hoisted(() => ({ take: (_event: LiveEvent) => {} }));

vi.mock("../api/client", async (original) => ({
  ...(await original<typeof import("../api/client")>()),
  client: asked,
}));
vi.mock("../components/live/live", () => ({
  useLiveEvents: (take: (event: LiveEvent) => void) => {
    live.take = take;
  },
}));

const vm = (name: string, more: object = {}) => ({
  vm: name.toUpperCase(),
  name,
  memory_bytes: 1 << 30,
  priority: 0,
  state: "waiting",
  destination: "b",
  reason: "",
  findings: [],
  blockers: [],
  overrides: [],
  migration: null,
  disks: [],
  ...more,
});
const BLOCKED = { state: "blocked", reason: "QEMU says: no", blockers: ["vm_cannot_migrate"] };
const DISK = {
  target: "vda",
  path: "/images/good",
  format: "raw",
  capacity_bytes: 4 << 20,
  allocated_bytes: 1 << 20,
};
const ROOM = {
  host: "b",
  folders: ["/images"],
  free_bytes: 16 << 20,
  promised_bytes: 5 << 20,
  needed_bytes: 1 << 20,
  left_bytes: 10 << 20,
};
const RECORD = {
  id: "one",
  host: "a",
  destinations: [],
  order: "priority",
  priority: 0,
  max_outgoing: null,
  stop_after_failures: null,
  profile: null,
  local_disks: "profile",
  state: "running",
  ended: false,
  reason: "",
  total: 2,
  finished: 1,
  moved: 1,
  left: 0,
  states: {},
  total_bytes: 2 << 30,
  moved_bytes: 1 << 30,
  created_at: "2026-11-21T09:00:00Z",
  ended_at: null,
};
let record: object;

beforeEach(() => {
  vi.resetAllMocks();
  record = RECORD;
  asked.GET.mockImplementation(async (path: string) => {
    if (path.endsWith("/vms"))
      return {
        data: {
          items: [
            vm("moved", { state: "moved", migration: "m1" }),
            vm("going", { state: "requested", migration: "m2" }),
          ],
          next: null,
        },
      };
    if (path.endsWith("{evacuation}")) return { data: record };
    return { data: { items: [{ name: "a" }, { name: "b" }, { name: "c" }], next: null } };
  });
  asked.POST.mockImplementation(async (path: string) =>
    path.endsWith("/plan")
      ? {
          data: {
            host: "a",
            order: "priority",
            movable: 1,
            left: 1,
            considered: ["b"],
            refused: { c: "it is the same machine" },
            vms: [vm("good", { disks: [DISK] }), vm("bad", BLOCKED)],
            rooms: [ROOM],
          },
        }
      : { data: { ...RECORD, state: "paused" } },
  );
  asked.PUT.mockImplementation(async () => ({ data: {} }));
  asked.DELETE.mockImplementation(async () => ({ data: RECORD }));
});

function open(address: string) {
  rendered(
    <Routes>
      <Route path="/hosts/:name/evacuate" element={<EvacuationPlan />} />
      <Route path="/hosts/:name/evacuations/:id" element={<Evacuation />} />
    </Routes>,
    address,
  );
}

const bodies = (end: string) =>
  asked.POST.mock.calls.filter(([path]) => path.endsWith(end)).map(([, options]) => options.body);

test("a plan shows what stays and why, and what is chosen is what is asked", async () => {
  open("/hosts/a/evacuate");
  const row = (await screen.findByRole("link", { name: "bad" })).closest("tr") as HTMLElement;
  expect(within(row).getByText("QEMU says: no")).toBeVisible();
  expect(
    screen.getByText("c cannot receive VMs: it is the same machine", { exact: false }),
  ).toBeVisible();
  await userEvent.click(screen.getByRole("checkbox", { name: "b" }));
  await userEvent.selectOptions(screen.getByLabelText("Order of the VMs"), "largest-first");
  await userEvent.selectOptions(screen.getByLabelText("Profile"), "c");
  await userEvent.click(
    await screen.findByRole("checkbox", { name: "Override vm_cannot_migrate of bad" }),
  );
  const move = screen.getByRole("button", { name: "Move 1 VM" });
  await waitFor(() => expect(move).toBeEnabled());
  await userEvent.click(move);
  await waitFor(() => expect(bodies("/evacuations")).toHaveLength(1));
  expect(asked.PUT).toHaveBeenCalledWith(
    "/api/v1/hosts/{name}/maintenance",
    expect.objectContaining({ body: { on: true } }),
  );
  expect(bodies("/evacuations")[0]).toEqual({
    order: "largest-first",
    destinations: ["b"],
    profile: "c",
    vm_overrides: { BAD: ["vm_cannot_migrate"] },
  });
  expect(bodies("/plan").at(-1)).toEqual(bodies("/evacuations")[0]);
});

test.each([
  { status: 409, changes: [true, false], said: "The evacuation did not start" },
  { status: 504, changes: [true], said: "The evacuation may have started; a is in maintenance" },
])("after $status the maintenance is as the evacuation is", async ({ status, changes, said }) => {
  const plan = asked.POST.getMockImplementation();
  asked.POST.mockImplementation(async (path: string, options: object) => {
    if (!path.endsWith("/plan")) throw new ApiError(status, "no");
    return plan?.(path, options);
  });
  open("/hosts/a/evacuate");
  await userEvent.click(await screen.findByRole("button", { name: "Move 1 VM" }));
  expect(await screen.findByText(said, { exact: false })).toBeVisible();
  expect(asked.PUT.mock.calls.map(([, options]) => options.body.on)).toEqual(changes);
});

test("where the maintenance could not begin the evacuation was not asked for", async () => {
  asked.PUT.mockRejectedValue(new ApiError(0, "the service does not answer"));
  open("/hosts/a/evacuate");
  await userEvent.click(await screen.findByRole("button", { name: "Move 1 VM" }));
  expect(await screen.findByText("The evacuation did not start", { exact: false })).toBeVisible();
  expect(asked.PUT).toHaveBeenCalledOnce();
  expect(bodies("/evacuations")).toEqual([]);
});

test("an override of a VM that has left is dropped instead of holding up the plan", async () => {
  const plan = asked.POST.getMockImplementation();
  const gone = {
    field: "vm_overrides.BAD",
    code: "not_on_host",
    message: "BAD is not on a",
    remedy: "leave it out",
  };
  asked.POST.mockImplementation(async (path: string, options: { body: Asked }) => {
    if (options.body.vm_overrides?.BAD) throw new ApiError(422, "no such VM", [gone]);
    return plan?.(path, options);
  });
  open("/hosts/a/evacuate");
  await userEvent.click(
    await screen.findByRole("checkbox", { name: "Override vm_cannot_migrate of bad" }),
  );
  await waitFor(() => expect(bodies("/plan")).toHaveLength(3));
  expect(bodies("/plan").map((body) => body.vm_overrides)).toEqual([
    {},
    { BAD: ["vm_cannot_migrate"] },
    {},
  ]);
  await waitFor(() => expect(screen.getByRole("button", { name: "Move 1 VM" })).toBeEnabled());
});

test("VMs on local disks are copied or left, and the plan shows the disks and the room", async () => {
  open("/hosts/a/evacuate");
  const copied = await screen.findByRole("list", { name: "Disks that are copied" });
  expect(copied).toHaveTextContent("vda: /images/good, 1 MiB of 4 MiB");
  const room = within(screen.getByRole("grid", { name: "Room for images" }));
  expect(
    room.getAllByRole("cell").map((cell) => cell.textContent?.replaceAll("\u00a0", " ")),
  ).toEqual(["b", "/images", "16 MiB", "5 MiB", "1 MiB", "10 MiB"]);
  expect(bodies("/plan")[0]).not.toHaveProperty("local_disks");
  await userEvent.selectOptions(screen.getByLabelText("VMs on local disks"), "copy");
  await waitFor(() => expect(bodies("/plan").at(-1)).toHaveProperty("local_disks", "copy"));
  await userEvent.click(await screen.findByRole("button", { name: "Move 1 VM" }));
  await waitFor(() => expect(bodies("/evacuations")).toHaveLength(1));
  expect(bodies("/evacuations")[0]).toHaveProperty("local_disks", "copy");
});

test("all and each are followed, paused and cancelled", async () => {
  open("/hosts/a/evacuations/one");
  const all = await screen.findByRole("progressbar", { name: /1 of 2 VMs moved/ });
  expect(all).toHaveAttribute("aria-valuenow", "50");
  await screen.findByRole("link", { name: "going" });
  expect(screen.getByText("requested")).toBeVisible(); // it waits for its turn
  expect(screen.getAllByRole("progressbar")).toEqual([all]);
  const data = {
    share: 0.8,
    moved: 1,
    finished: 1,
    total: 2,
    remaining_s: 30,
    vms: { GOING: 0.6 },
  };
  const event = { topic: "evacuation", id: null, subject: "one", data } as unknown as LiveEvent;
  expect(evacuationProgress(event, "other")).toBeNull();
  live.take(event);
  await waitFor(() => expect(all).toHaveAttribute("aria-valuenow", "80"));
  expect(screen.getByText(/about 30 s left/)).toBeVisible();
  expect(screen.getByText("migrating")).toBeVisible();
  const bars = screen.getAllByRole("progressbar");
  expect(bars.map((bar) => bar.getAttribute("aria-valuenow"))).toEqual(["80", "60"]);

  await userEvent.click(screen.getByRole("button", { name: "Pause" }));
  await waitFor(() => expect(asked.POST.mock.calls[0]?.[0]).toMatch(/pause$/));
  await userEvent.click(screen.getByRole("button", { name: "Cancel evacuation" }));
  expect(asked.DELETE).not.toHaveBeenCalled();
  const dialog = screen.getByRole("dialog");
  await userEvent.click(within(dialog).getByRole("button", { name: "Cancel evacuation" }));
  await waitFor(() => expect(asked.DELETE).toHaveBeenCalledOnce());
});

test("what was asked for VMs on local disks is told", async () => {
  record = { ...RECORD, local_disks: "leave" };
  open("/hosts/a/evacuations/one");
  expect(await screen.findByText("Leave these VMs")).toBeVisible();
});

test("what is left once it is over is said, and nothing can be changed any more", async () => {
  record = { ...RECORD, state: "incomplete", ended: true, left: 1 };
  open("/hosts/a/evacuations/one");
  expect(await screen.findByText(/1 of its VMs remain on a/)).toBeVisible();
  expect(screen.queryByRole("button", { name: "Pause" })).toBeNull();
  expect(screen.queryByRole("progressbar", { name: /VMs moved/ })).toBeNull();
});

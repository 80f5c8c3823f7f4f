import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import * as actions from "../../api/actions";
import { rendered } from "../../test/rendered";
import { finding, plan } from "../../test/vms";
import { MigrateDialog } from "./MigrateDialog";

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
    profiles: list("profiles", []),
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
  expect(await screen.findByText(/vda: \/images\/a, 2 GiB of 4 GiB/)).toBeVisible();
  const button = screen.getByRole("button", { name: "Migrate" });
  await waitFor(() => expect(button).toBeEnabled());
  await userEvent.click(button);
  expect(start.mock.calls[0]?.[0]).toMatchObject({
    vm: "v",
    destination: "b",
    overrides: [],
    values: { copy_storage: true, copy_synchronous_writes: true },
  });
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
  expect(screen.getByText(/The QEMU that waits has an image of its own/)).toBeVisible();
});

import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { recoverMigration } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { rendered } from "../../test/rendered";
import { Recover } from "./Recover";

vi.mock("../../api/actions", () => ({ recoverMigration: vi.fn() }));
const RECORD = {
  id: "m1",
  source: "a",
  destination: "b",
  problems: [],
} as unknown as Schemas["MigrationView"];

beforeEach(() => vi.mocked(recoverMigration).mockReset());

test("it says which host holds what, and recovers over the address that is given", async () => {
  vi.mocked(recoverMigration).mockResolvedValue(RECORD);
  rendered(<Recover record={RECORD} />);
  expect(screen.getByText(/runs on b, and part of its memory is still on a/)).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Recover" }));
  await userEvent.type(screen.getByLabelText("Address of b"), " 192.0.2.7 ");
  const buttons = screen.getAllByRole("button", { name: "Recover" });
  await userEvent.click(buttons.at(-1) as HTMLElement);
  expect(recoverMigration).toHaveBeenCalledExactlyOnceWith("m1", "192.0.2.7");
});

test("it says why, where QEMU has said so", () => {
  const message = "post-copy is paused (lost): the guest runs on b";
  const problems = [{ field: "vm", code: "postcopy_paused", message, remedy: "recover it" }];
  rendered(<Recover record={{ ...RECORD, problems }} />);
  expect(screen.getByText(/is paused \(lost\): the guest runs on b/)).toBeVisible();
});

test("it says since when, and how much memory has not arrived", () => {
  const record = { ...RECORD, started_at: "2026-11-26T03:10:00Z" };
  const seen = { status: "postcopy-paused", at_ms: 65_000, remaining_bytes: 3 << 20 };
  const latest = { ...seen, total_bytes: 96 << 20 } as Schemas["SampleView"];
  const shown = rendered(<Recover record={record} latest={latest} />);
  expect(shown.container).toHaveTextContent(
    /Paused since .*1:05.*; 3 MiB of 96 MiB are still on a/,
  );
  const active = { ...latest, status: "postcopy-active" } as Schemas["SampleView"];
  shown.again(<Recover record={record} latest={active} />);
  expect(shown.container).not.toHaveTextContent("Paused since");
  expect(shown.container).toHaveTextContent(
    /Last sample: .*1:05.*; 3 MiB of 96 MiB were still on a/,
  );
});

test("nothing is tried before it is confirmed", async () => {
  rendered(<Recover record={RECORD} />);
  await userEvent.click(screen.getByRole("button", { name: "Recover" }));
  await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
  expect(recoverMigration).not.toHaveBeenCalled();
});

test("where libvirt cannot recover it, it says so and what can be done, and offers no button", () => {
  const problem = {
    field: "vm",
    code: "recovery_not_offered",
    message: "vmtune cannot recover this migration: libvirt 11.3.0 ends when it is asked to",
    remedy: "recover it by hand: docs/how-to/post-copy.md says how to do it by hand",
  };
  rendered(<Recover record={{ ...RECORD, problems: [problem] }} />);
  expect(screen.queryByRole("button", { name: "Recover" })).toBeNull();
  expect(
    screen.getByText(/libvirt 11.3.0 ends when it is asked to. Recover it by hand/),
  ).toBeVisible();
  expect(screen.queryByText(/then recover the migration/)).toBeNull();
});

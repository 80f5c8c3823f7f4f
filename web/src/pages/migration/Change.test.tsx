import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { changeMigration, doWithMigration } from "../../api/actions";
import type { Schemas } from "../../api/client";
import type { Needs } from "../../api/progress";
import { rendered } from "../../test/rendered";
import { Change } from "./Change";

vi.mock("../../api/actions", () => ({ changeMigration: vi.fn(), doWithMigration: vi.fn() }));

const NAMES = ["downtime_limit", "bandwidth", "throttle", "postcopy", "pause"] as const;
const controls = (why: Partial<Record<Schemas["Control"], string>> = {}) =>
  NAMES.map((name) => ({ name, why_not: why[name] ?? "", present_ms: null }));

/** Of a migration with this downtime limit in force. */
const limitedTo = (present_ms: number | null) =>
  controls().map((each) => (each.name === "downtime_limit" ? { ...each, present_ms } : each));
const needs = (part: Partial<Needs>): Needs => ({
  downtime_limit_ms: null,
  throughput_bytes_per_s: null,
  throttle_percent: null,
  ...part,
});

beforeEach(() => {
  for (const action of [changeMigration, doWithMigration]) {
    vi.mocked(action).mockReset();
    vi.mocked(action).mockResolvedValue({} as Schemas["MigrationView"]);
  }
});

test("two clicks raise the downtime limit to what lets it end, and say what that does", async () => {
  rendered(
    <Change id="m1" controls={limitedTo(200)} needs={needs({ downtime_limit_ms: 639.2 })} />,
  );
  await userEvent.click(screen.getByRole("button", { name: "Raise downtime limit" }));
  expect(screen.getAllByText(/The guest may stand still for that long/)[0]).toBeVisible();
  expect(changeMigration).not.toHaveBeenCalled();
  await userEvent.click(screen.getByRole("button", { name: "Change now" }));
  expect(changeMigration).toHaveBeenCalledExactlyOnceWith("m1", { downtime_limit_ms: "640 ms" });
});

test.each([
  ["what lets it end", "Raise downtime limit", 200, { downtime_limit_ms: 639.2 }, "640 ms"],
  ["never less than is set", "Raise downtime limit", 3000, { downtime_limit_ms: 639 }, "6000 ms"],
  ["twice the present limit", "Raise downtime limit", 5000, {}, "10000 ms"],
  ["a second where nothing is known", "Raise downtime limit", null, {}, "1000 ms"],
  ["in whole MiB", "Change bandwidth", null, { throughput_bytes_per_s: 157_000_000 }, "150 MiB/s"],
  ["in GiB", "Change bandwidth", null, { throughput_bytes_per_s: 12_000_000_000 }, "12 GiB/s"],
  ["a usual one", "Change bandwidth", null, {}, "1 GiB/s"],
  ["as much as it needs", "Throttle the guest", null, { throttle_percent: 71.2 }, "72 %"],
  ["as much as QEMU can", "Throttle the guest", null, { throttle_percent: 99.6 }, "99 %"],
  ["the most", "Throttle the guest", null, {}, "99 %"],
] as const)("%s is suggested by %s", async (_why, action, presentMs, needed, value) => {
  rendered(<Change id="m1" controls={limitedTo(presentMs)} needs={needs(needed)} />);
  await userEvent.click(screen.getByRole("button", { name: action }));
  expect(screen.getByRole("textbox")).toHaveValue(value);
});

test("another value is what is typed", async () => {
  rendered(<Change id="m1" controls={controls()} needs={null} />);
  await userEvent.click(screen.getByRole("button", { name: "Change bandwidth" }));
  const field = screen.getByLabelText("Maximum bandwidth");
  await userEvent.clear(field);
  expect(screen.getByRole("button", { name: "Change now" })).toBeDisabled();
  await userEvent.type(field, " 64 MiB/s ");
  await userEvent.click(screen.getByRole("button", { name: "Change now" }));
  const asked = { max_bandwidth_bytes_per_s: "64 MiB/s" };
  expect(changeMigration).toHaveBeenCalledExactlyOnceWith("m1", asked);
});

test.each([
  ["Switch to post-copy", "postcopy"],
  ["Pause the guest", "pause"],
] as const)("%s asks first and says what it does", async (action, what) => {
  rendered(<Change id="m1" controls={controls()} needs={null} />);
  await userEvent.click(screen.getByRole("button", { name: action }));
  expect(doWithMigration).not.toHaveBeenCalled();
  await userEvent.click(screen.getAllByRole("button", { name: action }).at(-1) as HTMLElement);
  expect(doWithMigration).toHaveBeenCalledExactlyOnceWith("m1", what);
});

test("what this migration cannot do is disabled, with the reason", async () => {
  const why = "it was started without postcopy, which cannot be switched on while it runs";
  rendered(<Change id="m1" controls={controls({ postcopy: why })} needs={null} />);
  const button = screen.getByRole("button", { name: "Switch to post-copy" });
  expect(button).toHaveAttribute("aria-disabled", "true");
  expect(screen.getByText(`Switch to post-copy: ${why}.`)).toBeVisible();
  await userEvent.click(button);
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("while disks are copied the guest's writes can be made to wait", async () => {
  const only = [{ name: "disk_writes" as const, why_not: "", present_ms: null }];
  rendered(<Change id="m1" controls={only} needs={null} />);
  await userEvent.click(screen.getByRole("button", { name: "Let disk writes wait" }));
  expect(screen.getAllByText(/the guest writes more slowly meanwhile/)[0]).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Change now" }));
  expect(changeMigration).toHaveBeenCalledExactlyOnceWith("m1", { copy_synchronous_writes: "on" });
});

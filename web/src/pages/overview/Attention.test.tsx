import { act, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { changeMigration } from "../../api/actions";
import type { Schemas } from "../../api/client";
import type { LiveEvent } from "../../api/live";
import type { Outlook } from "../../api/progress";
import { rendered } from "../../test/rendered";
import { progress } from "../../test/vms";
import { Attention } from "./Attention";

const asked = vi.hoisted(() => ({ GET: vi.fn() }));
const stream = vi.hoisted(() => ({ take: (_event: unknown) => {} }));

vi.mock("../../api/client", async (original) => ({
  ...(await original<typeof import("../../api/client")>()),
  client: asked,
}));
vi.mock("../../api/actions", () => ({ changeMigration: vi.fn(), doWithMigration: vi.fn() }));
vi.mock("../../components/live/live", () => ({
  useLiveEvents: (take: (event: unknown) => void) => {
    stream.take = take;
  },
}));

const move = (id: string, ended_at: string | null = null) => ({
  id,
  vm: "v",
  vm_name: `vm-${id}`,
  source: "a",
  destination: "b",
  state: ended_at === null ? "active" : "completed",
  ended_at,
});
const MOVES = [move("m1"), move("m2"), move("m3", "2026-11-21T09:00:00Z")];
const RECORD = { controls: [{ name: "downtime_limit", why_not: "", present_ms: 200 }] };
const ENDLESS: Outlook = {
  ends: false,
  left_ms: null,
  least_left_ms: null,
  most_left_ms: null,
  silence_ms: null,
  pass_left_ms: null,
  needs: { downtime_limit_ms: 3100, throughput_bytes_per_s: null, throttle_percent: null },
};

beforeEach(() => {
  asked.GET.mockReset();
  asked.GET.mockImplementation(async (path: string) => ({
    data: path.endsWith("/overview") ? { migrations: MOVES } : RECORD,
  }));
  vi.mocked(changeMigration).mockReset();
  vi.mocked(changeMigration).mockResolvedValue({} as Schemas["MigrationView"]);
});

async function shown(found: readonly Schemas["AttentionView"][] = []) {
  rendered(<Attention found={found} />);
  await vi.waitFor(() => expect(asked.GET).toHaveBeenCalled());
}

/** The progress of a migration, as the event stream brings it. */
const tell = (subject: string, outlook: Outlook | null) =>
  act(async () => {
    const data = progress({ outlook }) as unknown as LiveEvent["data"];
    stream.take({ topic: "migration", id: null, subject, data });
  });

test("a migration that will not end by itself needs attention, with what would let it end", async () => {
  await shown();
  expect(screen.getByText("Nothing.")).toBeVisible();
  await tell("m1", ENDLESS);
  const row = (await screen.findByRole("link", { name: "vm-m1" })).closest("li") as HTMLElement;
  expect(row).toHaveTextContent(/will not end by itself: needs a downtime limit of 3\.1\ss/);
  expect(within(row).getByRole("link")).toHaveAttribute("href", "/migrations/m1");
  expect(screen.queryByText("Nothing.")).toBeNull();
});

test("an evacuation that stopped is named by its host, and links to its page", async () => {
  const subject = { id: "e1", name: "rack7", text: "failed, 2 VMs left", since: null };
  await shown([{ concern: "evacuation stopped", count: 1, subjects: [subject] }]);
  const row = screen.getByRole("listitem");
  expect(row).toHaveTextContent(
    "evacuation stopped before its host was empty: rack7 (failed, 2 VMs left)",
  );
  const link = within(row).getByRole("link", { name: "rack7" });
  expect(link).toHaveAttribute("href", "/hosts/rack7/evacuations/e1");
});

test("a migration that is paused in post-copy comes before one that does not end, others after it", async () => {
  const one = (concern: Schemas["Concern"], name: string) => ({
    concern,
    count: 1,
    subjects: [{ id: name, name, text: "", since: null }],
  });
  await shown([one("post-copy paused", "torn"), one("failed", "lost")]);
  await tell("m1", ENDLESS);
  await screen.findByRole("link", { name: "vm-m1" });
  const rows = screen.getAllByRole("listitem").map((each) => each.textContent);
  expect(rows).toEqual([
    expect.stringContaining("torn"),
    expect.stringContaining("vm-m1"),
    expect.stringContaining("lost"),
  ]);
});

test.each<[string, string, Outlook | null]>([
  ["ends", "m2", { ...ENDLESS, ends: true, needs: null }],
  ["is not known yet", "m2", { ...ENDLESS, ends: null, needs: null }],
  ["nobody judges", "m2", null],
  ["has ended", "m3", ENDLESS],
  ["is of another fleet", "m9", ENDLESS],
])("one whose end %s does not", async (_why, subject, outlook) => {
  await shown();
  await tell(subject, outlook);
  await tell("m1", ENDLESS); // by then the other was heard, too
  await screen.findByRole("link", { name: "vm-m1" });
  expect(screen.getAllByRole("listitem")).toHaveLength(1);
});

test("one that ends after all leaves the list", async () => {
  await shown();
  await tell("m1", ENDLESS);
  await screen.findByRole("link", { name: "vm-m1" });
  await tell("m1", { ...ENDLESS, ends: true, needs: null });
  expect(await screen.findByText("Nothing.")).toBeVisible();
});

test("its limit is raised by two clicks, to what lets it end", async () => {
  await shown();
  await tell("m1", ENDLESS);
  await userEvent.click(await screen.findByRole("button", { name: "Raise limit of vm-m1" }));
  expect(await screen.findByLabelText("Downtime limit")).toHaveValue("3100 ms");
  expect(screen.getByRole("dialog", { name: "Raise downtime limit of vm-m1" })).toBeVisible();
  expect(changeMigration).not.toHaveBeenCalled();
  await userEvent.click(screen.getByRole("button", { name: "Change now" }));
  expect(changeMigration).toHaveBeenCalledExactlyOnceWith("m1", { downtime_limit_ms: "3100 ms" });
  expect(await screen.findByText("Downtime limit of vm-m1 is 3100 ms now")).toBeVisible();
});

test("no limit is offered to one that no limit lets end", async () => {
  await shown();
  const needs = { downtime_limit_ms: null, throughput_bytes_per_s: 1e9, throttle_percent: null };
  await tell("m1", { ...ENDLESS, needs });
  await screen.findByRole("link", { name: "vm-m1" });
  expect(screen.queryByRole("button", { name: /Raise limit/ })).toBeNull();
});

test("intents that were not kept lead to their migrations", async () => {
  const subjects = [{ id: "m3", name: "vm-m3", text: "a to b", since: null }];
  await shown([{ concern: "intent not kept", count: 1, subjects }]);
  const all = screen.getByRole("link", { name: "migration did not keep its intent" });
  expect(all).toHaveAttribute("href", "/migrations?intent=broken");
  expect(screen.getByRole("link", { name: "vm-m3" })).toHaveAttribute("href", "/migrations/m3");
});

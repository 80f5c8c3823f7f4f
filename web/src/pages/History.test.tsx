import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter } from "react-router";
import { expect, test, vi } from "vitest";
import type { SetupHistory } from "../api/trends";
import { Setup, setupTitle } from "./History";
import { cause } from "./history/ChangeTable";
import { plot } from "./history/plot";

vi.mock("../components/charts/Chart", () => ({
  Chart: ({ label }: { label: string }) => <div role="img" aria-label={label} />,
}));
const sent = vi.hoisted(() => ({ triage: vi.fn(() => Promise.resolve({})) }));
vi.mock("../api/trends", async (original) => ({
  ...(await original<object>()),
  triageChange: sent.triage,
}));

type Shift = NonNullable<SetupHistory["changes"]>[number];

const AT = "2026-11-01T00:20:00Z";
const RUN = "00000000-0000-4000-8000-000000000001";
const CHANGE: Shift = {
  at: 20,
  run: RUN,
  since: AT,
  kind: "step",
  until: null,
  ratio: 1.5,
  low: 1.4,
  high: 1.6,
  spread: null,
  matters: true,
  worse: true,
  text: "+50 %: worse",
  environment: ["qemu.version: 10.0.2 before, 10.1.0 since"],
  environment_after: -2,
  found: {
    id: "00000000-0000-4000-8000-00000000000c",
    scenario: "q/busy",
    metric: "total_time_ms",
    setup: "0011aabb",
    run: RUN,
    since: AT,
    kind: "step",
    text: "+50 %: worse",
    worse: true,
    found_at: AT,
    triage: "open",
    note: "",
    triaged_by: "",
    triaged_at: null,
  },
};
const ENTRY: SetupHistory = {
  id: "0011aabb",
  host: "h",
  testbed: "direct",
  qemu: "system",
  profile: "fast",
  texts: { multifd: "on" },
  points: Array.from({ length: 40 }, (_, index) => ({
    run: RUN,
    at: AT,
    value: index < 20 ? 1000 : 1500,
    fingerprint: "here",
    at_limit: false,
  })),
  changes: [CHANGE],
  reason: "",
  lost: [],
  completion: [],
  sign: null,
};

function show(entry: SetupHistory) {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <MemoryRouter>
        <Setup asked={{ scenario: "q/busy", metric: "total_time_ms" }} entry={entry} unit="ms" />
      </MemoryRouter>
    </QueryClientProvider>,
  );
}

test("a setup shows its changes, what became another near them, and its file", () => {
  show(ENTRY);
  expect(setupTitle(ENTRY)).toBe("fast, multifd on, QEMU system, direct, h");
  const row = within(screen.getByRole("grid")).getByRole("row", { name: /\+50 %/ });
  expect(within(row).getByText(/10.1.0 since \(2 runs earlier\)/)).toBeVisible();
  expect(within(row).getByText("not triaged")).toBeVisible();
  expect(screen.getByRole("img", { name: /40 runs, 1 change:/ })).toBeVisible();
  expect(screen.getByRole("link", { name: "CSV" })).toHaveAttribute(
    "href",
    expect.stringContaining("setup=0011aabb"),
  );
});

test("a change is triaged by keyboard, with a note", async () => {
  show(ENTRY);
  const user = userEvent.setup();
  screen.getByRole("button", { name: "Triage the change of run 21" }).focus();
  await user.keyboard("{Enter}");
  const dialog = screen.getByRole("dialog", { name: /Triage this change/ });
  await user.click(within(dialog).getByRole("radio", { name: "Known" }));
  await user.type(within(dialog).getByLabelText("Note"), "new kernel");
  await user.click(within(dialog).getByRole("button", { name: "Save" }));
  expect(sent.triage).toHaveBeenCalledWith(CHANGE.found?.id, "known", "new kernel");
});

test("an early sign is told as provisional, and drawn", () => {
  const text = "the last 3 runs: +20 % against the median before; provisional";
  const sign = {
    at: 37,
    run: RUN,
    since: AT,
    ratio: 1.2,
    strength: "faint" as const,
    false_at_most: 0.16,
    text,
  };
  const entry = { ...ENTRY, changes: [], sign };
  show(entry);
  expect(screen.getByText(`Faint early sign: ${text}`, { exact: false })).toBeVisible();
  expect(screen.getByText("No change in 40 runs.")).toBeVisible();
  const [series] = plot(entry, "ms").series as { markLine: { data: { xAxis: number }[] } }[];
  expect(series?.markLine.data.map((each) => each.xAxis)).toEqual([37.5]);
});

test("too few runs tell why no change is looked for, and lost runs are told", () => {
  const lost = [{ run: RUN, at: AT, state: "failed" as const }];
  show({ ...ENTRY, changes: null, reason: "changes are looked for in 20 runs or more", lost });
  expect(screen.getByText("changes are looked for in 20 runs or more")).toBeVisible();
  expect(screen.getByText("1 run did not complete, without a value.")).toBeVisible();
});

test("a change without another environment near it says so", () => {
  expect(cause({ ...CHANGE, environment: [] })).toBe("no change within 5 runs");
});

import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Route, Routes } from "react-router";
import { beforeEach, expect, test, vi } from "vitest";
import type { LiveEvent } from "../api/live";
import { rendered } from "../test/rendered";
import Study from "./Study";

const asked = vi.hoisted(() => ({ GET: vi.fn(), POST: vi.fn(), PUT: vi.fn(), DELETE: vi.fn() }));
const live = vi.hoisted(() => ({ take: (_event: LiveEvent) => {} }));

vi.mock("../api/client", async (original) => ({
  ...(await original<typeof import("../api/client")>()),
  client: asked,
}));
vi.mock("../components/charts/Chart", () => ({
  Chart: ({ label }: { label: string }) => <div role="img" aria-label={label} />,
}));
vi.mock("../components/live/live", () => ({
  useLiveEvents: (take: (event: LiveEvent) => void) => {
    live.take = take;
  },
}));

const RECORD = {
  id: "one",
  name: "capped-link",
  title: "",
  kind: "migration",
  scenario: "mine/small",
  state: "searching",
  ended: false,
  reason: "",
  host: "here",
  objective: "minimise total_time_ms where completed",
  space: ["multifd", "multifd_channels"],
  budget_runs: 80,
  budget_seconds: null,
  used: { runs: 3, seconds: 30 },
  trials: 2,
  pruned: 0,
  breaches: { cpu_percent: 2 },
  finalists: [1],
  campaign: null,
  result: null,
  created_at: "2026-11-21T09:00:00Z",
  started_at: "2026-11-21T09:00:00Z",
  ended_at: null,
  study: {},
};
const RUN = { block: 1, outcome: "completed", metrics: {}, host_load: 0, reason: "" };
const TRIALS = [
  {
    number: 0,
    origin: "default",
    settings: {},
    texts: {},
    medians: { total_time_ms: 8000 },
    completed: 1,
    finalist: false,
    runs: [{ ...RUN, run: "r0" }],
  },
  {
    number: 1,
    origin: "sampled",
    settings: { multifd: true },
    texts: { multifd: "on" },
    medians: { total_time_ms: 5000 },
    completed: 1,
    finalist: true,
    runs: [
      { ...RUN, run: "r1" },
      { ...RUN, block: 2, run: "r2" },
    ],
  },
];
const RESULT = {
  finding: "better",
  reason: "trial 1 is better than default",
  trial: 1,
  settings: { multifd: true },
  texts: { multifd: "on" },
  gain_percent: 37.5,
  within_percent: null,
  evidence: [
    {
      trial: 1,
      baseline: "default",
      metric: "total_time_ms",
      verdict: "better",
      estimate: 0.625,
      low: 0.6,
      high: 0.65,
      ratio: true,
      broken_share: 0,
      reason: "",
    },
    {
      trial: 1,
      baseline: "default",
      metric: "downtime_ms",
      verdict: "inconclusive",
      estimate: 3,
      low: 2.5,
      high: 3.5,
      ratio: true,
      broken_share: 0,
      reason: "",
    },
  ],
  draft: { profile: "capped-link-1", revision: 1 },
  environments: ["f"],
};
const ANALYSIS = {
  goals: ["total_time_ms", "downtime_ms"],
  importance: [
    { tunable: "multifd_channels", share: 0.75 },
    { tunable: "multifd", share: 0.25 },
  ],
  points: [
    { trial: 0, values: { total_time_ms: 8000, downtime_ms: 90 }, front: false },
    { trial: 1, values: { total_time_ms: 5000, downtime_ms: 40 }, front: true },
  ],
};
const METRICS = [
  { name: "total_time_ms", kind: "migration", title: "Total time", unit: "ms" },
  { name: "downtime_ms", kind: "migration", title: "Downtime by QEMU", unit: "ms" },
];
let record: object;
let analysis: object;

beforeEach(() => {
  vi.resetAllMocks();
  record = RECORD;
  analysis = ANALYSIS;
  asked.GET.mockImplementation(async (path: string) => {
    if (path.endsWith("/analysis")) return { data: analysis };
    if (path.endsWith("/run-metrics")) return { data: { items: METRICS, next: null } };
    return { data: path.endsWith("/trials") ? { items: TRIALS, next: null } : record };
  });
  asked.POST.mockResolvedValue({ data: { ...RECORD, state: "paused" } });
});

const show = () =>
  rendered(
    <Routes>
      <Route path="/bench/studies/:id" element={<Study />} />
    </Routes>,
    "/bench/studies/one",
  );

test("a study shows its trials with links to their runs, and where it is", async () => {
  show();
  const table = await screen.findByRole("grid", { name: "Trials" });
  expect(within(table).getByText("1, finalist")).toBeInTheDocument();
  expect(await within(table).findByText("Total time")).toBeInTheDocument();
  expect(within(table).getByText("5 s")).toBeInTheDocument();
  const run = within(table).getByRole("link", { name: "Run of trial 1 in block 2" });
  expect(run).toHaveAttribute("href", "/bench/runs/r2");
  expect(screen.getByText("cpu_percent: 2")).toBeInTheDocument();
  const data = { share: 0.4, phase: "searching", block: 2, trial: 1, origin: "sampled" };
  act(() => live.take({ topic: "study", subject: "one", id: null, at: null, data }));
  expect(screen.getByText("searching, block 2, trial 1 (sampled)")).toBeInTheDocument();
});

test("the importance of tunables is shown, and the front of several goals", async () => {
  show();
  const bar = await screen.findByRole("progressbar", { name: "Importance of multifd_channels" });
  expect(bar).toHaveAttribute("aria-valuenow", "75");
  expect(
    screen.getByText("The best that keep the constraints: 1. No other is better in every goal."),
  ).toBeInTheDocument();
  expect(
    await screen.findByRole("img", { name: /^Trials by Total time and Downtime by QEMU/ }),
  ).toBeInTheDocument();
});

test("one goal has no front, and few trials no importance", async () => {
  analysis = { ...ANALYSIS, goals: ["total_time_ms"], importance: [] };
  show();
  expect(await screen.findByText("Not known before more trials have run.")).toBeInTheDocument();
  expect(screen.queryByRole("img", { name: /^Trials by/ })).not.toBeInTheDocument();
});

test("a study is paused", async () => {
  show();
  await userEvent.click(await screen.findByRole("button", { name: "Pause" }));
  await waitFor(() =>
    expect(asked.POST).toHaveBeenCalledWith("/api/v1/studies/{study}/pause", {
      params: { path: { study: "one" } },
    }),
  );
});

test("a result names the verdict, its campaign, and the profile that is not assigned", async () => {
  record = { ...RECORD, state: "completed", ended: true, campaign: "c1", result: RESULT };
  show();
  expect(await screen.findByText("better by 37.5 %")).toBeInTheDocument();
  const time = "Total time: better, -38 % (-40 % to -35 %)";
  expect(await screen.findByText(time)).toBeInTheDocument();
  const silence = "Downtime by QEMU: inconclusive, +200 % (+150 % to +250 %)";
  expect(screen.getByText(silence)).toBeInTheDocument();
  expect(screen.getAllByText("Trial 1 against default")).toHaveLength(1);
  const campaign = screen.getByRole("link", { name: "Confirming campaign" });
  expect(campaign).toHaveAttribute("href", "/bench/campaigns/c1");
  expect(screen.getByRole("link", { name: "capped-link-1" })).toBeInTheDocument();
  expect(screen.queryByRole("button", { name: "Pause" })).not.toBeInTheDocument();
});

import { screen } from "@testing-library/react";
import { Route, Routes } from "react-router";
import { beforeEach, expect, test, vi } from "vitest";
import { rendered } from "../test/rendered";
import Migration from "./Migration";

const asked = vi.hoisted(() => ({ GET: vi.fn() }));

vi.mock("../api/client", async (original) => ({
  ...(await original<typeof import("../api/client")>()),
  client: asked,
}));
vi.mock("../components/live/live", () => ({ useLiveEvents: () => {} }));
vi.mock("../components/charts/Chart", () => ({ Chart: () => null, prepareCharts: () => {} }));

const DISK = {
  target: "vda",
  path: "/images/a",
  created: false,
  total_bytes: 0,
  copied_bytes: 0,
  ready_ms: null,
  bytes_per_s: 0,
  written_bytes_per_s: 0,
  left_ms: null,
  converges: null,
  source_image: "kept",
  source_image_reason: "",
};
const RECORD = {
  id: "m",
  vm: "v",
  vm_name: "db1",
  source: "a",
  destination: "b",
  trigger: "vmtune",
  profile: null,
  state: "queued",
  ended: false,
  abort: "none",
  failure: "",
  problems: [],
  missing_flags: [],
  overrides: [],
  totals: null,
  postcopy: null,
  disks: [DISK],
  outcomes: [],
  step_texts: [],
  step_records: [],
  reaper: null,
  samples_kept: "whole",
  created_at: "2026-11-26T09:00:00Z",
  active_at: null,
  ended_at: null,
  queued: true,
  ahead: 2,
  waiting_reason: "1 of 1 copy disks from or to a",
  controls: [],
};
let record: object;

beforeEach(() => {
  record = RECORD;
  asked.GET.mockImplementation(async (path: string) =>
    path.endsWith("{migration}") ? { data: record } : { data: { items: [], next: null } },
  );
});

function open() {
  rendered(
    <Routes>
      <Route path="/migrations/:id" element={<Migration />} />
    </Routes>,
    "/migrations/m",
  );
}

test("one that waits for another's copy says so, and shows no progress of its own", async () => {
  open();
  const notice = "db1 waits in the queue: 1 of 1 copy disks from or to a";
  expect(await screen.findByText(notice)).toBeVisible();
  expect(screen.getByText("2 ahead; 1 of 1 copy disks from or to a")).toBeVisible();
  expect(screen.queryByRole("progressbar", { name: /migrating/ })).toBeNull();
});

test("once it has begun nothing is said of the queue", async () => {
  record = { ...RECORD, state: "starting", queued: false, ahead: null, waiting_reason: "" };
  open();
  expect(await screen.findByRole("progressbar", { name: /db1 is migrating/ })).toBeVisible();
  expect(screen.queryByText(/waits in the queue/)).toBeNull();
  expect(screen.queryByText(/ ahead/)).toBeNull();
});

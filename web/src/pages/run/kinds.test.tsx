import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { aReport } from "../../test/bench";
import { rendered } from "../../test/rendered";
import { RunTable } from "../bench/RunTable";
import { Alone } from "../compare/Alone";
import { Boot } from "./Boot";
import { processes } from "./charts";
import { Load } from "./Load";
import { Sends } from "./Sends";
import { Updates } from "./Updates";

function metric(
  name: string,
  kind: Schemas["ScenarioKind"],
  unit: Schemas["Unit"],
): Schemas["MetricView"] {
  return {
    name,
    kind,
    title: name,
    unit,
    better: "lower",
    group: "time",
    headline: true,
    success: false,
    description: name,
  };
}

const METRICS = [
  metric("total_time_ms", "migration", "ms"),
  metric("iops", "block", "count"),
  metric("boot_to_userspace_ms", "boot", "ms"),
];

function aRun(kind: Schemas["ScenarioKind"], metrics: Record<string, number>): Schemas["RunView"] {
  return {
    id: `${kind}-1`,
    scenario: `${kind}/x`,
    kind,
    state: "completed",
    ended: true,
    counts: true,
    ahead: null,
    failure: "",
    profile: null,
    revision: null,
    values: {},
    texts: {},
    metrics,
    testbed: "direct",
    qemu: "system",
    vm: null,
    host: "here",
    fingerprint: null,
    slot: null,
    imported_from: "",
    created_at: "2026-11-22T00:00:00Z",
    started_at: null,
    ended_at: null,
  };
}

test("a table of runs has the figures of the kinds that are in it", () => {
  rendered(<RunTable runs={[aRun("block", { iops: 31621 })]} metrics={METRICS} />);
  const heads = screen.getAllByRole("columnheader").map((each) => each.textContent);
  expect(heads).toContain("iops");
  expect(heads).not.toContain("total_time_ms");
  expect(heads).not.toContain("boot_to_userspace_ms");
  expect(screen.getByText("31,621")).toBeVisible();
});

test("runs of several kinds have their figures in one column", () => {
  const runs = [aRun("block", { iops: 31621 }), aRun("boot", { boot_to_userspace_ms: 801 })];
  rendered(<RunTable runs={runs} metrics={METRICS} />);
  const heads = screen.getAllByRole("columnheader").map((each) => each.textContent);
  expect(heads.at(-1)).toBe("Metrics");
  expect(screen.getByText("iops: 31,621")).toBeVisible();
  expect(screen.getByText("boot_to_userspace_ms: 801 ms")).toBeVisible();
});

test("a boot tells what it reached, and what was not counted", () => {
  rendered(
    <Boot
      boot={{
        end: "given up",
        ended_ms: 3000,
        kernel: "Linux 6.12",
        firmware: "OVMF",
        qemu: "10.0.2",
        host_kernel: "6.1",
        serial_tail: "",
        marks: [
          { name: "guest", at_ms: 222, region_updates: 18 },
          { name: "kernel", at_ms: 1400, region_updates: null },
        ],
      }}
    />,
  );
  const [, guest, kernel] = screen.getAllByRole("row");
  expect(within(guest as HTMLElement).getByText("18")).toBeVisible();
  expect(within(kernel as HTMLElement).getByText("–")).toBeVisible();
  expect(screen.getByText("given up")).toBeVisible();
});

test("disks that a guest has loaded tell how", () => {
  const none = { requests: 0, mean_ns: 0, min_ns: 0, max_ns: 0, bins: [] };
  const guest = {
    block_bytes: 4096,
    disks: 2,
    queues: 4,
    places: 256,
    depth: 64,
    disk_bytes: 1 << 30,
    counted_us: 1_000_000,
    read: none,
    write: none,
    errors: 0,
    wrong: 0,
    wakes: 7,
    interrupts: 1234,
  };
  const run = { ...aRun("block", {}), lengths: { processes: 0 } } as unknown;
  const block = { qemu: "10.0.2", guest_io: guest } as unknown;
  rendered(<Load run={run as Schemas["RunDetail"]} block={block as Schemas["BlockRecord"]} />);
  expect(screen.getByText("a guest with 2 virtio-blk disks")).toBeVisible();
  expect(screen.getByText("4, 64 requests at once")).toBeVisible();
  expect(screen.getByText("1,234")).toBeVisible();
});

test("maps and memory of a QEMU are lines over time", () => {
  const look = { phase: "during", stacks: 4, vsz_bytes: 1 << 30 } as const;
  const option = processes(
    [
      { ...look, at_ms: 0, maps: 300, rss_bytes: 1 },
      { ...look, at_ms: 400, maps: 800, rss_bytes: 2 },
    ],
    [{ at_ms: 100, name: "load" }],
  );
  const series = option.series as { name: string; data: number[][] }[];
  expect(series.map((each) => each.name)).toEqual([
    "Memory maps",
    "Coroutine stacks",
    "Memory (RSS)",
  ]);
  expect(series[0]?.data).toEqual([
    [0, 300],
    [400, 800],
  ]);
});

test("an arm that is compared with nothing shows how its values lie", () => {
  const figure = (value: number) => ({ value, above: false });
  const report = aReport([]);
  const summary = {
    arm: "this host",
    runs: 10,
    measured: 10,
    censored: 0,
    missing: 0,
    failed: 0,
    minimum: figure(700),
    lower_quartile: figure(750),
    median: figure(800),
    upper_quartile: figure(850),
    maximum: figure(999),
    multimodal: null,
  };
  rendered(
    <Alone
      actions={<a href="/report">Report</a>}
      report={{
        ...report,
        cells: [
          {
            name: "boots/a",
            title: "",
            comparisons: [],
            spreads: [{ metric: "total_time_ms", summary }],
          },
          {
            name: "boots/b",
            title: "",
            comparisons: [],
            spreads: [{ metric: "total_time_ms", summary }],
          },
        ],
      }}
    />,
  );
  expect(screen.getByText("boots/a: no comparison")).toBeVisible();
  expect(screen.getAllByText("999 ms")).toHaveLength(2);
  expect(screen.getAllByText("10 runs")).toHaveLength(2);
  const first = screen.getByRole("region", { name: "boots/a: no comparison" });
  expect(within(first).getByRole("link", { name: "Report" })).toBeVisible();
  expect(screen.getAllByRole("link", { name: "Report" })).toHaveLength(1);
});

test("updates of a memory map tell their distribution and the kernel's parameters", () => {
  const times = {
    count: 1000,
    median_us: 10.25,
    p90_us: 12,
    p99_us: 40,
    most_us: 1234,
    mean_us: 11,
  };
  rendered(
    <Updates
      srcu={{
        cost: { vcpus: 2, add: times, delete: times, idle_add: times, idle_delete: times },
        ended_ms: 500,
        asked: 2000,
        host_kernel: "6.18",
        srcutree: { srcu_max_nodelay: "1000" },
        config_hz: 250,
      }}
    />,
  );
  const [, add] = screen.getAllByRole("row");
  expect(within(add as HTMLElement).getByText("10.3 µs")).toBeVisible();
  expect(within(add as HTMLElement).getByText("1,234 µs")).toBeVisible();
  expect(screen.getByText("srcu_max_nodelay=1000")).toBeVisible();
});

function counts(sends: number, sentBytes: number): Schemas["SendCounts"] {
  return {
    sends,
    sent_bytes: sentBytes,
    send_us: 2 * sends,
    send_cpu_us: sends,
    zero_copy_sends: sends,
    zero_copy_bytes: sentBytes,
    copied_sends: sends - 1,
    flushes: 2,
    flush_us: 3000,
  };
}

test("sends have what each iteration cost", () => {
  const first = counts(50_000, 1 << 30);
  const nothing = { ...counts(0, 0), copied_sends: 0, flushes: 0, flush_us: 0 };
  rendered(
    <Sends
      sends={{
        total: first,
        iterations: [
          { iteration: 1, at_ms: 100, counts: first },
          { iteration: 2, at_ms: 200, counts: nothing },
        ],
      }}
    />,
  );
  const rows = screen.getAllByRole("row").slice(1);
  const cells = rows.map((row) =>
    within(row)
      .getAllByRole("cell")
      .map((cell) => cell.textContent),
  );
  const expected = ["50,000", "1 GiB", "50 ms/GiB", "100 ms/GiB", "50,000", "49,999", "2, 3 ms"];
  expect(cells).toEqual([
    ["1", ...expected],
    ["2", "0", "0 B", "\u2013", "\u2013", "0", "0", "0, 0 ms"],
    ["All", ...expected],
  ]);
});

import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter } from "react-router";
import { expect, test, vi } from "vitest";
import { aComparison, aReport, aText } from "../../test/bench";
import { asked } from "./asked";
import { Environments } from "./Environments";
import { MetricTable, runsOf } from "./MetricTable";
import { PairTable } from "./PairTable";
import { publishedNotes } from "./Published";
import { type Comparison, type Pair, pairsOf, primaryOf, shownOf } from "./pairs";
import { intervals, pointsOf, ratiosOf, strip } from "./plots";

const SHARE = aComparison("ring_full_exits", {
  effect: {
    scale: "difference",
    estimate: -9,
    bound: "at most",
    low: null,
    high: -2,
    level: 0.95,
    margin_low: -1,
    margin_high: 1,
    rank: 0,
    differences: 0,
  },
  verdict: "inconclusive",
  reason: "",
  scale_reason: "compared by difference: a value is 0",
});
const SHARE_TEXT = aText({
  title: "Ring-full exits",
  primary: false,
  effect: "<= -9",
  times: "",
  interval: "up to -2",
});
const REPORT = aReport([aComparison("total_time_ms"), SHARE], {
  texts: [[aText(), SHARE_TEXT]],
});

function only(pairs: readonly Pair[]): Pair {
  const [pair] = pairs;
  if (pair === undefined || pairs.length !== 1) throw new Error(`${pairs.length} pairs`);
  return pair;
}

function table(report = REPORT) {
  const pair = only(pairsOf(report));
  render(<MetricTable report={report} pair={pair} comparisons={pair.comparisons} />);
  return screen.getByRole("grid", { name: "tuned compared to stock" });
}

test("no heading of a column is shortened", () => {
  const shown = within(table());
  for (const name of ["Effect", "Interval", "Medians", "Verdict"])
    expect(shown.getByRole("columnheader", { name })).toHaveClass("pf-m-nowrap");
});

test("a row tells both arms, the effect with its interval, and the verdict, with units", () => {
  const row = within(table()).getByRole("row", { name: /Total time/ });
  for (const text of ["500 ms", "300 ms", "-40 %", "0.6 times", "-45 to -35 %", "better"]) {
    expect(within(row).getByText(text, { exact: false })).toBeVisible();
  }
  expect(within(row).getByText("(primary)", { exact: false })).toBeVisible();
});

test("where there is no ratio the difference is told, with an open end and its bound", () => {
  const row = within(table()).getByRole("row", { name: /Ring-full exits/ });
  expect(within(row).getByText("≤ -9", { exact: false })).toBeVisible();
  expect(within(row).getByText("up to -2")).toBeVisible();
});

test("why the primary metric got its verdict is open, others are opened on demand", async () => {
  const shown = table();
  expect(within(shown).getByText("tuned is 35 % to 45 % lower")).toBeVisible();
  const reason = within(shown).getByText("compared by difference: a value is 0");
  expect(reason.closest("tr")).toHaveAttribute("hidden");
  const row = within(shown).getByRole("row", { name: /Ring-full exits/ });
  await userEvent.click(within(row).getByRole("button", { name: /Details/ }));
  expect(reason.closest("tr")).not.toHaveAttribute("hidden");
});

test("withheld verdicts are told as such, and their reasons not repeated", () => {
  const withheld = aReport([aComparison("total_time_ms", { verdict: null })], {
    withheld: "the campaign goes on",
  });
  const shown = table(withheld);
  expect(within(shown).getByText("withheld")).toBeVisible();
  expect(within(shown).queryByText("tuned is 35 % to 45 % lower")).toBeNull();
});

test("a claim below the noise floor is marked", () => {
  table(aReport([aComparison("total_time_ms", { below_noise_floor: true })]));
  expect(screen.getByText("better, below the noise floor")).toBeVisible();
});

test("a metric without a better and a worse has no verdict", () => {
  const neither = aComparison("total_time_ms", { verdict: null });
  table(aReport([{ ...neither, criterion: { ...neither.criterion, direction: "none" } }]));
  expect(screen.getByText("no direction")).toBeVisible();
});

test("how many runs a median is of", () => {
  const { a } = aComparison("total_time_ms");
  expect(runsOf(a)).toBe("10 runs");
  expect(runsOf({ ...a, measured: 7, censored: 1, missing: 2 })).toBe(
    "8 of 10 runs, 1 at the limit",
  );
});

test("pairs are told apart by conditions and arms, the primary metric leads", () => {
  const report = aReport([SHARE, aComparison("total_time_ms")]);
  const pair = only(pairsOf(report));
  expect(primaryOf(pair)?.criterion.metric).toBe("total_time_ms");
  const cell = {
    name: "busy",
    title: "busy",
    comparisons: [aComparison("total_time_ms")],
    spreads: [],
  };
  const two = pairsOf({
    ...report,
    cells: [...report.cells, cell],
    texts: [...report.texts, [aText()]],
  });
  expect(two.map((each) => [each.title, each.comparisons.length])).toEqual([
    ["plain/1gbs", 2],
    ["busy", 1],
  ]);
  expect(new Set(two.map((each) => each.id)).size).toBe(2);
});

test("the pairs' table links to each pair and marks the chosen one", () => {
  const pair = only(pairsOf(REPORT));
  render(
    <MemoryRouter>
      <PairTable
        label="Pairs"
        report={REPORT}
        pairs={[pair]}
        chosen={pair.id}
        linkTo={() => "/there"}
      />
    </MemoryRouter>,
  );
  const link = screen.getByRole("link", { name: "tuned compared to stock" });
  expect(link).toHaveAttribute("href", "/there");
  expect(link).toHaveAttribute("aria-current", "true");
});

test("few metrics are shown first, all on demand, and never none", () => {
  const pair = only(pairsOf(REPORT));
  const few = [{ name: "total_time_ms", headline: true }];
  expect(shownOf(pair, false, few)).toHaveLength(1);
  expect(shownOf(pair, true, few)).toHaveLength(2);
  const share = { ...SHARE, text: SHARE_TEXT };
  const others = { ...pair, comparisons: [share] };
  expect(shownOf(others, false, few)).toEqual([share]);
});

test("what environments differ in is told, and can be expected", async () => {
  const expectIt = vi.fn();
  const report = aReport([], {
    environments: [
      { fingerprint: "x", runs: { stock: 2 } },
      { fingerprint: "y", runs: { tuned: 1 } },
    ],
    differences: [
      { field: "qemu.version", values: ["10.0.2", null], expected: false },
      { field: "kernel.release", values: ["6.1", "6.12"], expected: true },
    ],
  });
  render(<Environments report={report} expectIt={expectIt} />);
  expect(screen.getByText(/The environments differ: the results may be due/)).toBeVisible();
  expect(screen.getByRole("columnheader", { name: "tuned: 1 run" })).toBeVisible();
  expect(screen.getByText("unknown")).toBeVisible();
  expect(screen.getByText("expected")).toBeVisible();
  await userEvent.click(
    screen.getByRole("button", { name: "Expect a difference of qemu.version" }),
  );
  expect(expectIt).toHaveBeenCalledWith("qemu.version");
});

type RenderItem = (parameters: null, axes: typeof AXES) => { children: { type: string }[] };

const AXES = {
  value: () => 0,
  coord: ([x, y]: [number, number]): [number, number] => [100 * x, y],
};

test("only ratios share the axis of intervals", () => {
  const { comparisons } = only(pairsOf(REPORT));
  expect(ratiosOf(comparisons).map((each) => each.criterion.metric)).toEqual(["total_time_ms"]);
  const option = intervals(REPORT, comparisons) as { yAxis: { data: string[] } };
  expect(option.yAxis.data).toEqual(["Total time"]);
  const { series } = option as unknown as { series: { renderItem: RenderItem }[] };
  const drawn = (effect: Partial<NonNullable<Comparison["effect"]>>) => {
    const base = aComparison("total_time_ms");
    if (!base.effect) throw new Error("it has an effect");
    const changed = { ...base, text: aText(), effect: { ...base.effect, ...effect } };
    const [only] = (intervals(REPORT, [changed]) as typeof option & { series: typeof series })
      .series;
    return only?.renderItem(null, AXES).children.map((each) => each.type);
  };
  expect(series).toHaveLength(1);
  expect(drawn({})).toEqual(["line", "line", "line", "circle"]);
  expect(drawn({ low: null })).toEqual(["line", "line", "circle"]); // no tick at the open end
  expect(drawn({ low: null, high: null })).toEqual(["circle"]);
});

test("every run is a point beside its arm, and lines join the runs of a block", () => {
  const pair = only(pairsOf(REPORT));
  const points = pointsOf(REPORT, pair, "total_time_ms", "b");
  expect(points.map((each) => each.value)).toEqual([310, 290]);
  expect(points.every((each) => Math.abs(each.x - 1) < 0.5)).toBe(true);
  const option = strip(REPORT, pair, "total_time_ms") as { series: { data: unknown[][] }[] };
  const [lines, ofA, ofB] = option.series;
  expect([ofA?.data.length, ofB?.data.length]).toEqual([2, 2]);
  expect(lines?.data.map((each) => each[1])).toEqual([510, 310, Number.NaN, 490, 290, Number.NaN]);
});

test("published figures are told apart from other notes", () => {
  expect(
    publishedNotes(["all arms are the same", "published in dirty-ring, plain, b against a: 2"]),
  ).toEqual(["published in dirty-ring, plain, b against a: 2"]);
});

test("the address says what is compared, or not yet", () => {
  const of = (text: string) => asked(new URLSearchParams(text));
  expect(of("")).toBeNull();
  expect(of("a=profile%3Dx")).toBeNull();
  expect(of("campaign=c&pair=1")).toEqual({ campaign: "c" });
  expect(of("a=profile%3Dx&b=profile%3Dy&margin=3&expected=qemu&expected=kernel")).toEqual({
    a: "profile=x",
    b: "profile=y",
    margin_percent: 3,
    expected: ["qemu", "kernel"],
  });
  expect(of("campaign=c&margin=none")).toEqual({ campaign: "c" });
});

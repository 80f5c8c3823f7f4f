/** Answers of the service for tests of the benchmark's pages. */
import type { Schemas } from "../api/client";

type Comparison = Schemas["Comparison"];

const NO_VALUE = {
  runs: 10,
  measured: 10,
  censored: 0,
  missing: 0,
  failed: 0,
  minimum: null,
  lower_quartile: null,
  upper_quartile: null,
  maximum: null,
  multimodal: null,
};

export function aComparison(metric: string, part: Partial<Comparison> = {}): Comparison {
  return {
    criterion: {
      metric,
      direction: "lower",
      unit: "ms",
      margin: 0.05,
      resolution: 1,
      least_difference: null,
      share: false,
      primary: metric === "total_time_ms",
      success: false,
      needs_success: false,
    },
    a: { ...NO_VALUE, arm: "stock", median: { value: 500, above: false } },
    b: { ...NO_VALUE, arm: "tuned", median: { value: 300, above: false } },
    design: "paired",
    size: 10,
    effect: {
      scale: "ratio",
      estimate: 0.6,
      bound: "exact",
      low: 0.55,
      high: 0.65,
      level: 0.95,
      margin_low: 0.952,
      margin_high: 1.05,
      rank: 9,
      differences: 55,
    },
    scale_reason: "",
    verdict: "better",
    reason: "tuned is 35 % to 45 % lower",
    notes: [],
    ...part,
  };
}

/** The words of a comparison, as the service makes them. */
export function aText(part: Partial<Schemas["ResultText"]> = {}): Schemas["ResultText"] {
  return {
    title: "Total time",
    primary: true,
    medians: ["500 ms", "300 ms"],
    quartiles: ["-", "-"],
    runs: ["10", "10"],
    effect: "-40 %",
    times: "0.6 times",
    interval: "-45 to -35 %",
    verdict: "better",
    reason: "",
    rank: "-",
    level: "95 %",
    test: "-",
    p: "-",
    adjusted_p: "-",
    delta: "-",
    better_in: "-",
    noise_floor: "-",
    of_medians: "-",
    grey: false,
    ...part,
  };
}

function aMetric(name: string, title: string, unit: Schemas["Unit"]): Schemas["ReportMetric"] {
  return { name, title, unit, direction: "lower", measures: `How ${title} is measured.` };
}

function aRun(arm: string, block: number, value: number): Schemas["ReportRun"] {
  return {
    run: `${arm}-${block}`,
    cell: "plain/1gbs",
    arm,
    block,
    number: block,
    state: "completed",
    environment: "here",
    values: { total_time_ms: value },
    censored: [],
    failure: "",
  };
}

export function aReport(
  comparisons: Comparison[],
  part: Partial<Schemas["ComparisonView"]> = {},
): Schemas["ComparisonView"] {
  return {
    format: "vmtune comparison",
    version: 1,
    title: "stock against tuned",
    made_at: "2026-11-21T20:00:00+00:00",
    primary_metric: "total_time_ms",
    arms: [
      { name: "stock", facts: {} },
      { name: "tuned", facts: {} },
    ],
    environments: [{ fingerprint: "here", runs: { stock: 2, tuned: 2 } }],
    differences: [],
    metrics: [
      aMetric("total_time_ms", "Total time", "ms"),
      aMetric("ring_full_exits", "Ring-full exits", "count"),
    ],
    cells: [{ name: "plain/1gbs", title: "", comparisons, spreads: [] }],
    texts: [comparisons.map(() => aText())],
    runs: [
      aRun("stock", 1, 510),
      aRun("stock", 2, 490),
      aRun("tuned", 1, 310),
      aRun("tuned", 2, 290),
    ],
    campaign: "mine",
    seed: 7,
    blocks: 2,
    withheld: "",
    notes: [],
    ...part,
  };
}

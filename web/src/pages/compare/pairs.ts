/** A report's comparisons, by conditions and pairs of arms. */
import type { Schemas } from "../../api/client";

export type Report = Schemas["ComparisonView"];
export type ResultText = Schemas["ResultText"];
/** With its words, which are the service's: the same as in the report and the command line. */
export type Comparison = Schemas["Comparison"] & { text: ResultText };
export type Unit = Schemas["Unit"];

/**
 * B held against A under one set of conditions.
 * @property id what the address calls it.
 * @property comparisons the primary metric's first.
 */
export interface Pair {
  id: string;
  cell: string;
  title: string;
  a: string;
  b: string;
  comparisons: readonly Comparison[];
}

/** Every pair of *report*, in its order. */
export function pairsOf(report: Report): Pair[] {
  const found = new Map<string, Comparison[]>();
  const pairs: Pair[] = [];
  for (const [place, cell] of report.cells.entries()) {
    for (const [index, comparison] of cell.comparisons.entries()) {
      const text = report.texts[place]?.[index];
      if (text === undefined) continue;
      const each: Comparison = { ...comparison, text };
      const id = JSON.stringify([cell.name, each.a.arm, each.b.arm]);
      const known = found.get(id);
      if (known !== undefined) {
        known.push(each);
        continue;
      }
      const comparisons = [each];
      found.set(id, comparisons);
      const { arm: a } = each.a;
      pairs.push({
        id,
        cell: cell.name,
        title: cell.title || cell.name,
        a,
        b: each.b.arm,
        comparisons,
      });
    }
  }
  return pairs;
}

/** The comparison of the metric that the campaign was made for; the first where none is. */
export function primaryOf(pair: Pair): Comparison | undefined {
  return pair.comparisons.find((each) => each.criterion.primary) ?? pair.comparisons[0];
}

/** The comparisons that are shown: all, or those of the few metrics that people look at first. */
export function shownOf(
  pair: Pair,
  all: boolean,
  table: readonly Pick<Schemas["MetricView"], "name" | "headline">[],
): readonly Comparison[] {
  if (all) return pair.comparisons;
  const headline = new Set(table.filter((each) => each.headline).map((each) => each.name));
  const few = pair.comparisons.filter(
    ({ criterion }) => criterion.primary || headline.has(criterion.metric),
  );
  return few.length > 0 ? few : pair.comparisons;
}

export function metricOf(report: Report, name: string): Schemas["ReportMetric"] | undefined {
  return report.metrics.find((each) => each.name === name);
}

export function unitOf(report: Report, name: string): Unit {
  return metricOf(report, name)?.unit ?? "";
}

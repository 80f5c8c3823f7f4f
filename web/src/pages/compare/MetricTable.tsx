import { ExpandableRowContent, Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { VerdictLabel } from "../../components/BenchLabels";
import { effectText, figure, intervalText } from "../../components/measure";
import { MetricName } from "../bench/MetricName";
import { Wide } from "../bench/Wide";
import { type Comparison, metricOf, type Pair, type Report, type Unit, unitOf } from "./pairs";

const COLUMNS = 8;

/** Each metric of a pair of arms: both arms, the effect with its interval, and the verdict. */
export function MetricTable({
  report,
  pair,
  comparisons,
}: {
  report: Report;
  pair: Pair;
  comparisons: readonly Comparison[];
}) {
  const label = `${pair.b} compared to ${pair.a}`;
  return (
    <Wide label={label}>
      <Table aria-label={label} variant="compact" gridBreakPoint="grid-lg">
        <Thead>
          <Tr>
            <Th screenReaderText="Why" />
            <Th>Metric</Th>
            <Th modifier="breakWord">A: {pair.a}</Th>
            <Th modifier="breakWord">B: {pair.b}</Th>
            <Th modifier="nowrap">Effect</Th>
            <Th modifier="nowrap">Interval</Th>
            <Th modifier="nowrap">Medians</Th>
            <Th modifier="nowrap">Verdict</Th>
          </Tr>
        </Thead>
        {comparisons.map((each, index) => (
          <MetricRow
            key={each.criterion.metric}
            report={report}
            pair={pair}
            comparison={each}
            index={index}
          />
        ))}
      </Table>
    </Wide>
  );
}

function MetricRow({
  report,
  pair,
  comparison,
  index,
}: {
  report: Report;
  pair: Pair;
  comparison: Comparison;
  index: number;
}) {
  const { metric: name, primary } = comparison.criterion;
  const [open, setOpen] = useState(primary);
  const unit = unitOf(report, name);
  const metric = metricOf(report, name);
  const told = why(report, comparison);
  return (
    <Tbody isExpanded={open}>
      <Tr isContentExpanded={open}>
        <Td
          {...(told.length > 0
            ? { expand: { rowIndex: index, isExpanded: open, onToggle: () => setOpen(!open) } }
            : {})}
        />
        <Td dataLabel="Metric">
          {metric ? (
            <MetricName title={metric.title} measures={metric.measures} better={metric.direction} />
          ) : (
            name
          )}
          {primary && " (primary)"}
        </Td>
        <Td dataLabel={`A: ${pair.a}`}>
          <Arm comparison={comparison} side="a" unit={unit} />
        </Td>
        <Td dataLabel={`B: ${pair.b}`}>
          <Arm comparison={comparison} side="b" unit={unit} />
        </Td>
        <Td dataLabel="Effect" modifier="nowrap">
          {effectText(comparison.effect, unit)}
          {comparison.effect && (
            <small> {comparison.effect.scale === "ratio" ? "B/A" : "B − A"}</small>
          )}
        </Td>
        <Td dataLabel="Interval" modifier="nowrap">
          {intervalText(comparison.effect, unit)}
        </Td>
        <Td dataLabel="Medians" modifier="nowrap">
          <MediansCell comparison={comparison} unit={unit} />
        </Td>
        <Td dataLabel="Verdict">
          <VerdictLabel comparison={comparison} />
        </Td>
      </Tr>
      {told.length > 0 && (
        <Tr isExpanded={open}>
          <Td colSpan={COLUMNS}>
            <ExpandableRowContent>
              {told.map((each) => (
                <p key={each}>{each}</p>
              ))}
            </ExpandableRowContent>
          </Td>
        </Tr>
      )}
    </Tbody>
  );
}

/** The ratio of the arms' medians (their difference, where there is no ratio) and its interval. */
function MediansCell({ comparison, unit }: { comparison: Comparison; unit: Unit }) {
  const { effect, medians } = comparison;
  if (!medians || !effect) return "–";
  const ratio = { ...effect, ...medians, bound: "exact" as const };
  return (
    <>
      {effectText(ratio, unit)}
      <br />
      <small>{intervalText(ratio, unit)}</small>
    </>
  );
}

/** An arm's median, quartiles and how many runs they are of; for shares, how many of how many. */
function Arm({ comparison, side, unit }: { comparison: Comparison; side: "a" | "b"; unit: Unit }) {
  const { shares } = comparison;
  if (shares) return <>{`${shares[`${side}_count`]} of ${shares[`${side}_runs`]}`}</>;
  const summary = comparison[side];
  return (
    <>
      {figure(summary.median, unit)}
      <br />
      <small>
        {summary.median &&
          `${figure(summary.lower_quartile, unit)} to ${figure(summary.upper_quartile, unit)}, `}
        {runsOf(summary)}
      </small>
    </>
  );
}

/** "10 runs"; "8 of 10 runs" where some have no value; with how many did not converge. */
export function runsOf(summary: Schemas["Summary"]): string {
  const there = summary.measured + summary.censored;
  const runs = summary.missing ? `${there} of ${summary.runs} runs` : `${there} runs`;
  return summary.censored ? `${runs}, ${summary.censored} at the limit` : runs;
}

/** Why that verdict, and what else is to be known of it. Withheld ones are told once for all. */
function why(report: Report, comparison: Comparison): string[] {
  const reason = report.withheld ? "" : comparison.reason;
  return [reason, comparison.scale_reason, ...comparison.notes].filter(Boolean);
}

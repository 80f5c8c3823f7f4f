import { ExpandableRowContent, Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { VerdictLabel } from "../../components/labels/BenchLabels";
import { Td } from "../../components/tables/Td";
import { bounded, unbroken } from "../../components/text/format";
import { MetricName } from "../bench/MetricName";
import { Wide } from "../bench/Wide";
import { type Comparison, metricOf, type Pair, type Report } from "./pairs";

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
          <Arm comparison={comparison} side={0} />
        </Td>
        <Td dataLabel={`B: ${pair.b}`}>
          <Arm comparison={comparison} side={1} />
        </Td>
        <Td dataLabel="Effect" modifier="nowrap">
          {bounded(comparison.text.effect)}
          {comparison.text.times && (
            <>
              <br />
              <small>{bounded(comparison.text.times)}</small>
            </>
          )}
        </Td>
        <Td dataLabel="Interval" modifier="nowrap">
          {comparison.text.interval}
        </Td>
        <Td dataLabel="Medians">{bounded(comparison.text.of_medians)}</Td>
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

/** An arm's median, quartiles and how many runs they are of; for shares, how many of how many. */
function Arm({ comparison, side }: { comparison: Comparison; side: 0 | 1 }) {
  const { text, shares } = comparison;
  if (shares) return <>{text.medians[side]}</>;
  return (
    <>
      {unbroken(text.medians[side])}
      <br />
      <small>
        {text.quartiles[side] !== "-" && (
          <>
            {unbroken(text.quartiles[side])}
            <br />
          </>
        )}
        {runsOf(comparison[side === 0 ? "a" : "b"])}
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

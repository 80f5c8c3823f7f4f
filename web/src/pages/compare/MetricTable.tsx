import { Popover } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import type { Schemas } from "../../api/client";
import { VerdictLabel } from "../../components/BenchLabels";
import { effectText, figure, intervalText } from "../../components/measure";
import { Wide } from "../bench/Wide";
import { type Comparison, metricOf, type Pair, type Report, type Unit, unitOf } from "./pairs";

/** Each metric of a pair of arms: both arms, the effect with its interval, and the verdict. */
export function MetricTable({ report, pair }: { report: Report; pair: Pair }) {
  return (
    <Wide label={`${pair.b} against ${pair.a}`}>
      <Table aria-label={`${pair.b} against ${pair.a}`} variant="compact">
        <Thead>
          <Tr>
            <Th>Metric</Th>
            <Th>A: {pair.a}</Th>
            <Th>B: {pair.b}</Th>
            <Th>Effect</Th>
            <Th>Interval</Th>
            <Th>Verdict</Th>
            <Th>Why</Th>
          </Tr>
        </Thead>
        <Tbody>
          {pair.comparisons.map((each) => {
            const name = each.criterion.metric;
            const unit = unitOf(report, name);
            const metric = metricOf(report, name);
            return (
              <Tr key={name}>
                <Th dataLabel="Metric" scope="row">
                  {metric ? <MetricName metric={metric} /> : name}
                  {each.criterion.primary && " (primary)"}
                </Th>
                <Td dataLabel={`A: ${pair.a}`}>
                  <Arm comparison={each} side="a" unit={unit} />
                </Td>
                <Td dataLabel={`B: ${pair.b}`}>
                  <Arm comparison={each} side="b" unit={unit} />
                </Td>
                <Td dataLabel="Effect" modifier="nowrap">
                  {effectText(each.effect, unit)}
                  {each.effect && <small> {each.effect.scale === "ratio" ? "B/A" : "B − A"}</small>}
                </Td>
                <Td dataLabel="Interval" modifier="nowrap">
                  {intervalText(each.effect, unit)}
                </Td>
                <Td dataLabel="Verdict">
                  <VerdictLabel comparison={each} />
                </Td>
                <Td dataLabel="Why">{why(report, each)}</Td>
              </Tr>
            );
          })}
        </Tbody>
      </Table>
    </Wide>
  );
}

function MetricName({ metric }: { metric: Schemas["ReportMetric"] }) {
  const better =
    metric.direction === "none" ? "It explains others." : `${metric.direction} is better.`;
  return (
    <Popover
      headerContent={metric.title}
      bodyContent={
        <>
          <p>{metric.measures}</p>
          <p>{better}</p>
        </>
      }
    >
      <button type="button" className="pf-v6-c-button pf-m-link pf-m-inline">
        {metric.title}
      </button>
    </Popover>
  );
}

/** An arm's median with its quartiles and how many runs it is of; for shares, how many of how many. */
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

function why(report: Report, comparison: Comparison): string {
  if (report.withheld) return "";
  const more =
    comparison.more_blocks === null || comparison.more_blocks === undefined
      ? []
      : [`about ${comparison.more_blocks} more blocks may settle it`];
  return [comparison.reason, ...more, ...comparison.notes].filter(Boolean).join("; ");
}

import { Stack, StackItem } from "@patternfly/react-core";
import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import type { ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { Empty } from "../../components/layout/Async";
import { Td } from "../../components/tables/Td";
import { figure } from "../../components/text/measure";
import { MetricName } from "../bench/MetricName";
import { Section } from "../bench/Section";
import { Wide } from "../bench/Wide";
import { runsOf } from "./MetricTable";
import { metricOf, type Report, unitOf } from "./pairs";

/** How the values of an arm lie that nothing is held against, cell by cell.
 *  @param actions beside the first of them: what concerns all. */
export function Alone({ report, actions }: { report: Report; actions?: ReactNode }) {
  const cells = report.cells.filter((cell) => cell.spreads.length > 0);
  if (cells.length === 0) {
    return <Empty title="No pair of arms can be compared">None of their runs has ended yet.</Empty>;
  }
  return (
    <Stack hasGutter>
      {cells.map((cell, index) => (
        <StackItem key={cell.name}>
          <Section
            title={`${cell.title || cell.name}: no comparison`}
            actions={index === 0 ? actions : undefined}
          >
            <Wide label={cell.title || cell.name}>
              <Table aria-label={cell.title || cell.name} variant="compact">
                <Thead>
                  <Tr>
                    <Th>Metric</Th>
                    <Th>Median</Th>
                    <Th>Quartiles</Th>
                    <Th>Minimum</Th>
                    <Th>Maximum</Th>
                    <Th>Runs</Th>
                  </Tr>
                </Thead>
                <Tbody>
                  {cell.spreads.map((spread) => (
                    <SpreadRow key={spread.metric} report={report} spread={spread} />
                  ))}
                </Tbody>
              </Table>
            </Wide>
          </Section>
        </StackItem>
      ))}
    </Stack>
  );
}

function SpreadRow({ report, spread }: { report: Report; spread: Schemas["Spread"] }) {
  const { metric: name, summary } = spread;
  const metric = metricOf(report, name);
  const shown = (value: Schemas["Summary"]["median"]) => figure(value, unitOf(report, name));
  return (
    <Tr>
      <Td dataLabel="Metric">
        {metric ? (
          <MetricName title={metric.title} measures={metric.measures} better={metric.direction} />
        ) : (
          name
        )}
        {name === report.primary_metric && " (primary)"}
      </Td>
      <Td dataLabel="Median">{shown(summary.median)}</Td>
      <Td dataLabel="Quartiles">
        {summary.median
          ? `${shown(summary.lower_quartile)} to ${shown(summary.upper_quartile)}`
          : "\u2013"}
      </Td>
      <Td dataLabel="Minimum">{shown(summary.minimum)}</Td>
      <Td dataLabel="Maximum">{shown(summary.maximum)}</Td>
      <Td dataLabel="Runs">{runsOf(summary)}</Td>
    </Tr>
  );
}

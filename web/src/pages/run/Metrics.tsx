import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { metrics } from "../../api/bench";
import type { Schemas } from "../../api/client";
import { Async, Empty } from "../../components/layout/Async";
import { Td } from "../../components/tables/Td";
import { measure, number } from "../../components/text/measure";
import { MetricName } from "../bench/MetricName";
import { Section } from "../bench/Section";

/** A share of one run is no number: it is so, or it is not. */
export function said(row: Pick<Schemas["MetricView"], "success" | "unit">, value: number): string {
  if (row.success) return value === 1 ? "yes" : "no";
  return measure(value, row.unit);
}

/** What a run was reduced to. A figure that could not be had is missing, never 0. */
export function Metrics({ values }: { values: Schemas["RunView"]["metrics"] }) {
  const table = useQuery(metrics);
  return (
    <Section title="Metrics">
      {Object.keys(values).length === 0 ? (
        <Empty title="No metrics">The run has no metrics.</Empty>
      ) : (
        <Async query={table}>
          {(rows) => {
            const known = rows.filter((row) => values[row.name] !== undefined);
            const others = Object.keys(values).filter((name) => !rows.some((r) => r.name === name));
            return (
              <Table aria-label="Metrics" variant="compact">
                <Thead>
                  <Tr>
                    <Th>Metric</Th>
                    <Th>Value</Th>
                    <Th>Group</Th>
                  </Tr>
                </Thead>
                <Tbody>
                  {known.map((row) => (
                    <Tr key={row.name}>
                      <Td dataLabel="Metric">
                        <MetricName
                          title={row.title}
                          measures={row.description}
                          better={row.better}
                        />
                      </Td>
                      <Td dataLabel="Value" modifier="nowrap">
                        {said(row, values[row.name] ?? 0)}
                      </Td>
                      <Td dataLabel="Group">{row.group}</Td>
                    </Tr>
                  ))}
                  {others.map((name) => (
                    <Tr key={name}>
                      <Td dataLabel="Metric">{name}</Td>
                      <Td dataLabel="Value">{number(values[name] ?? 0)}</Td>
                      <Td dataLabel="Group">an earlier version</Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            );
          }}
        </Async>
      )}
    </Section>
  );
}

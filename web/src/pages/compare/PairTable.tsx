import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "react-router";
import { VerdictLabel } from "../../components/labels/BenchLabels";
import { Td } from "../../components/tables/Td";
import { bounded } from "../../components/text/format";
import { metricOf, type Pair, primaryOf, type Report } from "./pairs";

/** A row for each pair of arms under each set of conditions: what the primary metric says. */
export function PairTable({
  label,
  report,
  pairs,
  chosen,
  linkTo,
}: {
  label: string;
  report: Report;
  pairs: readonly Pair[];
  chosen?: string;
  linkTo: (pair: Pair) => string;
}) {
  return (
    <Table aria-label={label} variant="compact">
      <Thead>
        <Tr>
          <Th>Arms</Th>
          <Th modifier="nowrap">Conditions</Th>
          <Th>Metric</Th>
          <Th modifier="nowrap">Effect</Th>
          <Th modifier="nowrap">Interval</Th>
          <Th modifier="nowrap">Verdict</Th>
          <Th>Reason</Th>
        </Tr>
      </Thead>
      <Tbody>
        {pairs.map((pair) => {
          const primary = primaryOf(pair);
          if (primary === undefined) return null;
          const metric = primary.criterion.metric;
          return (
            <Tr key={pair.id} isRowSelected={pair.id === chosen}>
              <Td dataLabel="Arms">
                <Link
                  to={linkTo(pair)}
                  {...(pair.id === chosen ? { "aria-current": "true" as const } : {})}
                >
                  {pair.b} compared to {pair.a}
                </Link>
              </Td>
              <Td dataLabel="Conditions">{pair.title}</Td>
              <Td dataLabel="Metric">{metricOf(report, metric)?.title ?? metric}</Td>
              <Td dataLabel="Effect" modifier="nowrap">
                {bounded(primary.text.effect)}
              </Td>
              <Td dataLabel="Interval" modifier="nowrap">
                {primary.text.interval}
              </Td>
              <Td dataLabel="Verdict">
                <VerdictLabel comparison={primary} />
              </Td>
              <Td dataLabel="Reason">{report.withheld ? "withheld" : primary.reason}</Td>
            </Tr>
          );
        })}
      </Tbody>
    </Table>
  );
}

import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import type { Schemas } from "../../api/client";
import { Wide } from "./Wide";

/** A published table as it was printed, with its ratios computed anew. */
export function ReferenceTable({ table }: { table: Schemas["ReferenceTableView"] }) {
  const ratios = table.rows.some((row) => row.ratios.length > 0);
  const changes = table.rows.some((row) => row.change !== null);
  return (
    <Wide label={table.title}>
      <Table aria-label={table.title} variant="compact">
        <caption>
          {[
            `${table.title}, in ${table.unit}`,
            table.better === "none" ? "" : `${table.better} is better`,
            table.metric_note,
            table.note,
          ]
            .filter(Boolean)
            .join(". ")}
        </caption>
        <Thead>
          <Tr>
            <Th>Arm</Th>
            <Th>Under</Th>
            <Th>As printed</Th>
            {ratios && <Th>Ratio</Th>}
            {changes && <Th>Change</Th>}
          </Tr>
        </Thead>
        <Tbody>
          {table.rows.map((row, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a published table never changes
            <Tr key={index}>
              <Td dataLabel="Arm">{row.arm}</Td>
              <Td dataLabel="Under">
                {row.at.map((fact) => `${fact.title} ${fact.text}`).join(", ") || "–"}
              </Td>
              <Td dataLabel="As printed">
                {row.printed} {table.unit}
              </Td>
              {ratios && (
                <Td dataLabel="Ratio">
                  {row.ratios
                    .filter((each) => each.text)
                    .map((each) => `${each.text} to ${each.base}`)
                    .join(", ") || "–"}
                </Td>
              )}
              {changes && (
                <Td dataLabel="Change">
                  {row.change
                    ? row.change.agrees
                      ? row.change.printed
                      : `printed ${row.change.printed}, its figures give ${row.change.recomputed}`
                    : "–"}
                </Td>
              )}
            </Tr>
          ))}
        </Tbody>
      </Table>
    </Wide>
  );
}

import { Title } from "@patternfly/react-core";
import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import type { Schemas } from "../../api/client";
import { Td } from "../../components/tables/Td";
import { Wide } from "./Wide";

/**
 * A published table as it was printed, with its ratios computed anew.
 * @param titled whether its title stands above it already.
 */
export function ReferenceTable({
  table,
  titled = false,
}: {
  table: Schemas["ReferenceTableView"];
  titled?: boolean;
}) {
  const ratios = table.rows.some((row) => row.ratios.length > 0);
  const changes = table.rows.some((row) => row.change !== null);
  return (
    <Wide label={`Table: ${table.title}`}>
      {!titled && (
        <Title headingLevel="h3" size="md">
          {table.title}
        </Title>
      )}
      {[table.better === "none" ? "" : `${table.better} is better`, table.metric_note, table.note]
        .filter(Boolean)
        .map((each) => (
          <p key={each}>{sentence(each)}</p>
        ))}
      <Table aria-label={table.title} variant="compact">
        <Thead>
          <Tr>
            <Th>Arm</Th>
            <Th>Conditions</Th>
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
              <Td dataLabel="Conditions">
                {row.at.map((fact) => `${fact.title} ${fact.text}`).join(", ") || "–"}
              </Td>
              <Td dataLabel="As printed">
                {row.printed} {row.low !== null && table.unit}
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
                      : `printed ${row.change.printed}, computed ${row.change.recomputed}`
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

/** A note as a sentence of its own. */
function sentence(note: string): string {
  const begun = note.charAt(0).toUpperCase() + note.slice(1);
  return begun.endsWith(".") ? begun : `${begun}.`;
}

import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import type { Schemas } from "../../api/client";
import { FactList } from "../../components/layout/Facts";
import { Td } from "../../components/tables/Td";
import { count, duration } from "../../components/text/format";
import { Section } from "../bench/Section";

/** What a boot reached, and when. */
export function Boot({ boot }: { boot: Schemas["BootRecord"] }) {
  return (
    <Section title="Boot">
      <Table aria-label="Boot marks" variant="compact">
        <Thead>
          <Tr>
            <Th>Mark</Th>
            <Th>At</Th>
            <Th>Updates of memory regions so far</Th>
          </Tr>
        </Thead>
        <Tbody>
          {boot.marks.map((mark) => (
            <Tr key={mark.name}>
              <Td dataLabel="Mark">{mark.name}</Td>
              <Td dataLabel="At">{duration(mark.at_ms)}</Td>
              <Td dataLabel="Updates of memory regions so far">
                {mark.region_updates === null || mark.region_updates === undefined
                  ? "\u2013"
                  : count(mark.region_updates)}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      <FactList
        spread
        facts={[
          ["Ended", boot.end],
          ["Guest", boot.kernel || "\u2013"],
          ["Firmware", boot.firmware || "\u2013"],
        ]}
      />
    </Section>
  );
}

import { Card, CardBody, CardTitle } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import type { Schemas } from "../../api/client";
import { StatusLabel } from "../../components/StateLabel";
import { TunableName } from "../../components/TunableName";

/** What was wanted, and what QEMU was seen to run with. */
export function Outcomes({ outcomes }: { outcomes: readonly Schemas["OutcomeView"][] }) {
  if (outcomes.length === 0) return null;
  return (
    <Card>
      <CardTitle component="h2">What QEMU ran with</CardTitle>
      <CardBody>
        <Table aria-label="What QEMU ran with" variant="compact">
          <Thead>
            <Tr>
              <Th>Tunable</Th>
              <Th>Wanted</Th>
              <Th>QEMU ran with</Th>
              <Th>Status</Th>
            </Tr>
          </Thead>
          <Tbody>
            {outcomes.map((each) => (
              <Tr key={each.tunable}>
                <Td dataLabel="Tunable">
                  <TunableName name={each.tunable} />
                </Td>
                <Td dataLabel="Wanted">{each.wanted?.text ?? "unset"}</Td>
                <Td dataLabel="QEMU ran with">{each.seen?.text ?? "unknown"}</Td>
                <Td dataLabel="Status">
                  <StatusLabel status={each.status} /> {each.reason}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      </CardBody>
    </Card>
  );
}

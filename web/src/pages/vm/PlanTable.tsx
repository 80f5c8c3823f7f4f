import { Label } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import type { Schemas } from "../../api/client";
import { Findings } from "../../components/Findings";
import { TunableName } from "../../components/TunableName";

/** A plan as a difference: what is set, what it would become, when, and what stands against it. */
export function PlanTable({ plan }: { plan: Schemas["PlanView"] }) {
  return (
    <>
      <Findings findings={plan.findings} />
      <Table aria-label="Plan" variant="compact">
        <Thead>
          <Tr>
            <Th>Tunable</Th>
            <Th>Now</Th>
            <Th>Wanted</Th>
            <Th>Takes effect</Th>
            <Th>Route</Th>
          </Tr>
        </Thead>
        <Tbody>
          {plan.items.map((item) => (
            <Tr key={item.tunable}>
              <Td dataLabel="Tunable">
                <TunableName name={item.tunable} />
              </Td>
              <Td dataLabel="Now">{item.current.text}</Td>
              <Td dataLabel="Wanted">
                {item.differs ? (
                  <Label isCompact color="blue">
                    {item.wanted.text}
                  </Label>
                ) : (
                  item.wanted.text
                )}
              </Td>
              <Td dataLabel="Takes effect">{item.takes_effect}</Td>
              <Td dataLabel="Route">{item.route}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </>
  );
}

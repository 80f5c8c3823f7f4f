import { Card, CardBody, CardTitle, Label, List, ListItem } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import type { Schemas } from "../../api/client";
import { duration } from "../../components/format";

type StepRecord = Schemas["StepRecordView"];

const LOOK: Record<StepRecord["effect"], "success" | "danger" | "warning" | "info"> = {
  pending: "info",
  done: "success",
  refused: "danger",
  unknown: "warning",
};

/** The profile's convergence steps, and those that came due. */
export function Steps({
  texts,
  records,
}: {
  texts: readonly string[];
  records: readonly StepRecord[];
}) {
  return (
    <Card>
      <CardTitle component="h2">Convergence steps</CardTitle>
      <CardBody>
        {texts.length > 0 && (
          <List component="ol" aria-label="Steps of the profile">
            {texts.map((text) => (
              <ListItem key={text}>{text}</ListItem>
            ))}
          </List>
        )}
        {records.length === 0 ? (
          <p>None came due.</p>
        ) : (
          <Table aria-label="Steps that came due" variant="compact">
            <Thead>
              <Tr>
                <Th>After</Th>
                <Th>What</Th>
                <Th>Why</Th>
                <Th>Effect</Th>
              </Tr>
            </Thead>
            <Tbody>
              {records.map((each) => (
                <Tr key={`${each.at_ms} ${each.number} ${each.action}`}>
                  <Td dataLabel="After">{duration(each.at_ms)}</Td>
                  <Td dataLabel="What">{each.action}</Td>
                  <Td dataLabel="Why">{each.reason}</Td>
                  <Td dataLabel="Effect">
                    <Label isCompact status={LOOK[each.effect]}>
                      {each.effect}
                    </Label>{" "}
                    {each.detail}
                  </Td>
                </Tr>
              ))}
            </Tbody>
          </Table>
        )}
      </CardBody>
    </Card>
  );
}

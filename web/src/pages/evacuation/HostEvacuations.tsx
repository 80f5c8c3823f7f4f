import { Card, CardBody, CardTitle } from "@patternfly/react-core";
import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { evacuationsOf } from "../../api/evacuations";
import { Moment } from "../../components/labels/Moment";
import { More } from "../../components/tables/More";
import { Td } from "../../components/tables/Td";
import { count } from "../../components/text/format";
import { EvacuationLabel } from "./EvacuationVms";

/** The evacuations of a host, newest first; nothing where there were none. */
export function HostEvacuations({ name }: { name: string }) {
  const list = useInfiniteQuery(evacuationsOf(name));
  const items = (list.data?.pages ?? []).flatMap((page) => page.items);
  if (items.length === 0) return null;
  return (
    <Card>
      <CardTitle component="h2">Evacuations</CardTitle>
      <CardBody>
        <Table aria-label="Evacuations" variant="compact">
          <Thead>
            <Tr>
              <Th>Created</Th>
              <Th>State</Th>
              <Th>Moved</Th>
              <Th>Remaining</Th>
            </Tr>
          </Thead>
          <Tbody>
            {items.map((each) => (
              <Tr key={each.id}>
                <Td dataLabel="Created">
                  <Link to={`/hosts/${encodeURIComponent(name)}/evacuations/${each.id}`}>
                    <Moment at={each.created_at} />
                  </Link>
                </Td>
                <Td dataLabel="State">
                  <EvacuationLabel state={each.state} />
                </Td>
                <Td dataLabel="Moved">
                  {count(each.moved)} of {count(each.total)}
                </Td>
                <Td dataLabel="Remaining">{count(each.left)}</Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
        <More list={list} />
      </CardBody>
    </Card>
  );
}

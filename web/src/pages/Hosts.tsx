import { PageSection } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { hosts } from "../api/queries";
import { Async, Empty } from "../components/Async";
import { Moment } from "../components/Moment";
import { More } from "../components/More";
import { PageHead } from "../components/PageHead";

export default function Hosts() {
  const list = useInfiniteQuery(hosts);
  return (
    <>
      <PageHead title="Hosts" />
      <PageSection>
        <Async query={list}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            if (items.length === 0) {
              return (
                <Empty title="No hosts yet">
                  Add one with <code>vmtune host add NAME qemu:///system</code>
                </Empty>
              );
            }
            return (
              <Table aria-label="Hosts" variant="compact">
                <Thead>
                  <Tr>
                    <Th>Name</Th>
                    <Th>URI</Th>
                    <Th>Added</Th>
                  </Tr>
                </Thead>
                <Tbody>
                  {items.map((host) => (
                    <Tr key={host.name}>
                      <Td dataLabel="Name">
                        <Link to={`/hosts/${host.name}`}>{host.name}</Link>
                      </Td>
                      <Td dataLabel="URI" modifier="breakWord">
                        {host.uri}
                      </Td>
                      <Td dataLabel="Added">
                        <Moment at={host.created_at} />
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            );
          }}
        </Async>
        <More list={list} />
      </PageSection>
    </>
  );
}

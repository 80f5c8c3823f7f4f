import { PageSection } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { profiles } from "../api/queries";
import { Async, Empty } from "../components/Async";
import { ButtonLink } from "../components/ButtonLink";
import { Moment } from "../components/Moment";
import { More } from "../components/More";
import { PageHead } from "../components/PageHead";

export default function Profiles() {
  const list = useInfiniteQuery(profiles);
  return (
    <>
      <PageHead
        title="Profiles"
        actions={<ButtonLink to="/profiles/new">Create profile</ButtonLink>}
      />
      <PageSection>
        <Async query={list}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            if (items.length === 0) {
              return (
                <Empty
                  title="No profiles yet"
                  action={<ButtonLink to="/profiles/new">Create profile</ButtonLink>}
                >
                  A profile is a named set of tunables. What it leaves unset stays as QEMU has it.
                </Empty>
              );
            }
            return (
              <Table aria-label="Profiles" variant="compact">
                <Thead>
                  <Tr>
                    <Th>Name</Th>
                    <Th>Sets</Th>
                    <Th>Revision</Th>
                    <Th>Changed</Th>
                    <Th>What it is for</Th>
                  </Tr>
                </Thead>
                <Tbody>
                  {items.map((each) => (
                    <Tr key={each.name}>
                      <Td dataLabel="Name">
                        <Link to={`/profiles/${each.name}`}>{each.name}</Link>
                      </Td>
                      <Td dataLabel="Sets">{Object.keys(each.values).length}</Td>
                      <Td dataLabel="Revision">{each.revision}</Td>
                      <Td dataLabel="Changed">
                        <Moment at={each.revised_at} />
                      </Td>
                      <Td dataLabel="What it is for">{each.description}</Td>
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

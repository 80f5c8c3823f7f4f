import { PageSection } from "@patternfly/react-core";
import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { references } from "../api/bench";
import { Async, Empty } from "../components/layout/Async";
import { Td } from "../components/tables/Td";
import { count } from "../components/text/format";
import { BenchHead } from "./bench/BenchHead";

export default function References() {
  const list = useQuery(references);
  return (
    <>
      <BenchHead title="Published measurements">
        Published measurements, to compare your own runs with.
      </BenchHead>
      <PageSection>
        <Async query={list}>
          {(items) =>
            items.length === 0 ? (
              <Empty title="This version has no published measurements" />
            ) : (
              <Table aria-label="Published measurements" variant="compact">
                <Thead>
                  <Tr>
                    <Th>Title</Th>
                    <Th>Published</Th>
                    <Th>Date</Th>
                    <Th modifier="fitContent">Tables</Th>
                  </Tr>
                </Thead>
                <Tbody>
                  {items.map((each) => (
                    <Tr key={each.id}>
                      <Td dataLabel="Title">
                        <Link to={`/bench/reference/${each.id}`}>{each.title}</Link>
                      </Td>
                      <Td dataLabel="Published">{each.source.place}</Td>
                      <Td dataLabel="Date" modifier="nowrap">
                        {each.source.date || "unknown"}
                      </Td>
                      <Td dataLabel="Tables">{count(each.tables.length)}</Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            )
          }
        </Async>
      </PageSection>
    </>
  );
}

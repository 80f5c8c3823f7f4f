import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { measuredScenarios } from "../../api/bench";
import { Moment } from "../../components/labels/Moment";
import { Async, Empty } from "../../components/layout/Async";
import { More } from "../../components/tables/More";
import { Td } from "../../components/tables/Td";
import { count } from "../../components/text/format";
import { Section } from "./Section";

/** Scenarios that were measured here: shipped ones, and people's own, which are kept with runs. */
export function Measured() {
  const list = useInfiniteQuery(measuredScenarios);
  return (
    <Section title="Measured scenarios">
      <Async query={list} lines={2}>
        {(data) => {
          const items = data.pages.flatMap((page) => page.items);
          if (items.length === 0) {
            return (
              <Empty title="No measurements yet">Choose a scenario below and run it once.</Empty>
            );
          }
          return (
            <Table aria-label="Measured scenarios" variant="compact">
              <Thead>
                <Tr>
                  <Th>Name</Th>
                  <Th>Type</Th>
                  <Th>Runs</Th>
                  <Th>Newest run</Th>
                </Tr>
              </Thead>
              <Tbody>
                {items.map((each) => (
                  <Tr key={each.name}>
                    <Td dataLabel="Name">
                      {each.shipped ? (
                        <Link to={`/bench/scenarios/${each.name}`}>{each.name}</Link>
                      ) : (
                        each.name
                      )}
                    </Td>
                    <Td dataLabel="Type">{each.shipped ? "shipped" : "own"}</Td>
                    <Td dataLabel="Runs">
                      <Link to={`/bench/runs?scenario=${encodeURIComponent(each.name)}`}>
                        {count(each.runs)}
                      </Link>
                    </Td>
                    <Td dataLabel="Newest run">
                      <Link to={`/bench/runs/${each.newest}`}>
                        <Moment at={each.newest_at} />
                      </Link>
                    </Td>
                  </Tr>
                ))}
              </Tbody>
            </Table>
          );
        }}
      </Async>
      <More list={list} />
    </Section>
  );
}

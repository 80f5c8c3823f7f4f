import {
  PageSection,
  SearchInput,
  Switch,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "react-router";
import { scenarios } from "../api/bench";
import { Async, Empty } from "../components/layout/Async";
import { useOpenRow } from "../components/tables/openRow";
import { Td } from "../components/tables/Td";
import { about } from "../components/text/measure";
import { BenchHead } from "./bench/BenchHead";
import { Measured } from "./bench/Measured";
import { Section } from "./bench/Section";
import { changed } from "./bench/search";

export default function Scenarios() {
  const [search, setSearch] = useSearchParams();
  const opening = useOpenRow();
  const quick = search.get("quick") === "true";
  const wanted = search.get("name") ?? "";
  const list = useQuery(scenarios({ quick, testbed: "direct", qemu: "" }));
  const choose = (key: string, value: string) =>
    setSearch((old) => changed(old, { [key]: value }), { replace: true });
  return (
    <>
      <BenchHead title="Scenarios">
        What one measurement is to do: a live migration with its VM and its guest&apos;s work, a
        load on the blocks of a QEMU, or a boot.
      </BenchHead>
      <PageSection>
        <Measured />
      </PageSection>
      <PageSection>
        <Section title="Predefined">
          <Toolbar>
            <ToolbarContent>
              <ToolbarItem>
                <SearchInput
                  aria-label="Only scenarios with this text in name or title"
                  placeholder="Name or title"
                  value={wanted}
                  onChange={(_event, value) => choose("name", value)}
                  onClear={() => choose("name", "")}
                />
              </ToolbarItem>
              <ToolbarItem alignSelf="center">
                <Switch
                  id="quick"
                  label="Only the quick selection"
                  isChecked={quick}
                  onChange={(_event, on) => choose("quick", on ? "true" : "")}
                />
              </ToolbarItem>
            </ToolbarContent>
          </Toolbar>
          <Async query={list} lines={8}>
            {(items) => {
              const text = wanted.toLowerCase();
              const found = items.filter((each) =>
                `${each.name} ${each.title}`.toLowerCase().includes(text),
              );
              if (found.length === 0) return <Empty title="No scenario matches" />;
              return (
                <Table aria-label="Scenarios" variant="compact">
                  <Thead>
                    <Tr>
                      <Th>Name</Th>
                      <Th>Title</Th>
                      <Th modifier="fitContent">Maximum duration</Th>
                      <Th>On this machine</Th>
                    </Tr>
                  </Thead>
                  <Tbody>
                    {found.map((each) => (
                      <Tr key={each.name} {...opening(`/bench/scenarios/${each.name}`)}>
                        <Td dataLabel="Name">
                          <Link to={`/bench/scenarios/${each.name}`}>{each.name}</Link>
                        </Td>
                        <Td dataLabel="Title">{each.title}</Td>
                        <Td dataLabel="Maximum duration">{about(each.longest_s)}</Td>
                        <Td dataLabel="On this machine">
                          {each.applicable ? "can run" : each.reason}
                        </Td>
                      </Tr>
                    ))}
                  </Tbody>
                </Table>
              );
            }}
          </Async>
        </Section>
      </PageSection>
    </>
  );
}

import {
  PageSection,
  SearchInput,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "react-router";
import { vms } from "../api/queries";
import { Async, Empty } from "../components/Async";
import { Labels } from "../components/Labels";
import { More } from "../components/More";
import { PageHead } from "../components/PageHead";
import { Problems } from "../components/Problems";
import { VmLabel } from "../components/StateLabel";

export default function Vms() {
  const [search, setSearch] = useSearchParams();
  const host = search.get("host");
  const label = search.get("label");
  const list = useInfiniteQuery(
    vms({ ...(host ? { host } : {}), ...(label ? { label: [label] } : {}) }),
  );
  const choose = (key: string, value: string) =>
    setSearch((old) => {
      if (value) old.set(key, value);
      else old.delete(key);
      return old;
    });
  return (
    <>
      <PageHead title="VMs" />
      <PageSection>
        <Toolbar>
          <ToolbarContent>
            <ToolbarItem>
              <SearchInput
                aria-label="Only VMs of this host"
                placeholder="Host"
                value={host ?? ""}
                onChange={(_event, value) => choose("host", value)}
                onClear={() => choose("host", "")}
              />
            </ToolbarItem>
            <ToolbarItem>
              <SearchInput
                aria-label="Only VMs with this label"
                placeholder="Label, as in tier=db"
                value={label ?? ""}
                onChange={(_event, value) => choose("label", value)}
                onClear={() => choose("label", "")}
              />
            </ToolbarItem>
          </ToolbarContent>
        </Toolbar>
        <Async query={list}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            const problems = data.pages.flatMap((page) => page.problems);
            return (
              <>
                <Problems problems={problems} />
                {items.length === 0 ? (
                  <Empty title={host || label ? "No VM matches" : "No VMs yet"} />
                ) : (
                  <Table aria-label="VMs" variant="compact">
                    <Thead>
                      <Tr>
                        <Th>Name</Th>
                        <Th>Host</Th>
                        <Th>State</Th>
                        <Th>Labels</Th>
                      </Tr>
                    </Thead>
                    <Tbody>
                      {items.map((each) => (
                        <Tr key={each.uuid}>
                          <Td dataLabel="Name">
                            <Link to={`/vms/${each.uuid}`}>{each.name}</Link>
                          </Td>
                          <Td dataLabel="Host">
                            <Link to={`/hosts/${each.host}`}>{each.host}</Link>
                          </Td>
                          <Td dataLabel="State">
                            <VmLabel state={each.state} />
                          </Td>
                          <Td dataLabel="Labels">
                            <Labels labels={each.labels} />
                          </Td>
                        </Tr>
                      ))}
                    </Tbody>
                  </Table>
                )}
              </>
            );
          }}
        </Async>
        <More list={list} />
      </PageSection>
    </>
  );
}

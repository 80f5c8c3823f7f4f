import { PageSection } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { hosts } from "../api/queries";
import { Empty } from "../components/Async";
import { type ColumnOf, ListTable, PagedList } from "../components/ListTable";
import { Moment } from "../components/Moment";
import { PageHead } from "../components/PageHead";

const COLUMNS: readonly ColumnOf<Schemas["HostView"]>[] = [
  { title: "Name", cell: (each) => <Link to={`/hosts/${each.name}`}>{each.name}</Link> },
  { title: "URI", text: "breaks", cell: (each) => each.uri },
  { title: "Added", text: "short", cell: (each) => <Moment at={each.created_at} /> },
];

export default function Hosts() {
  const list = useInfiniteQuery(hosts);
  return (
    <>
      <PageHead title="Hosts" />
      <PageSection>
        <PagedList
          list={list}
          empty={
            <Empty title="No hosts yet">
              Add one with <code>vmtune host add NAME qemu:///system</code>
            </Empty>
          }
        >
          {(rows) => (
            <ListTable label="Hosts" columns={COLUMNS} rows={rows} name={(each) => each.name} />
          )}
        </PagedList>
      </PageSection>
    </>
  );
}

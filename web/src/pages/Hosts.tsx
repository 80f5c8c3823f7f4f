import { PageSection } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { hostsFound } from "../api/queries";
import { Empty } from "../components/Async";
import { type Filter, Filters, useFilters } from "../components/Filters";
import { bytes } from "../components/format";
import { type ColumnOf, ListTable, PagedList } from "../components/ListTable";
import { Moment } from "../components/Moment";
import { PageHead } from "../components/PageHead";
import { HostLabel, Labelled } from "../components/StateLabel";

const COLUMNS: readonly ColumnOf<Schemas["HostView"]>[] = [
  { title: "Name", cell: (each) => <Link to={`/hosts/${each.name}`}>{each.name}</Link> },
  { title: "State", cell: (each) => <Standing host={each} /> },
  {
    title: "VMs",
    text: "short",
    cell: (each) => <Link to={`/vms?host=${encodeURIComponent(each.name)}`}>{each.vm_count}</Link>,
  },
  { title: "Memory", text: "short", cell: memory },
  { title: "Findings", text: "short", cell: (each) => each.finding_count ?? "not known yet" },
  { title: "QEMU", text: "short", cell: (each) => each.qemu_version ?? "–" },
  { title: "libvirt", text: "short", cell: (each) => each.libvirt_version ?? "–" },
  { title: "Service", cell: (each) => each.owner || "–" },
  { title: "Last contact", text: "short", cell: (each) => <Moment at={each.answered_at} /> },
  { title: "URI", text: "breaks", cell: (each) => each.uri },
];

/** Whether it answers, since when not and why; and whether it is in maintenance. */
function Standing({ host }: { host: Schemas["HostView"] }) {
  return (
    <>
      <HostLabel state={host.state} />
      {host.maintenance_since && (
        <>
          {" "}
          <Labelled look="warning">
            {host.vm_count === 0 ? "maintenance, empty: safe to reboot" : "maintenance"}
          </Labelled>
        </>
      )}
      {host.unreachable && (
        <>
          {" "}
          since <Moment at={host.unreachable.since} />: {host.unreachable.reason}
        </>
      )}
    </>
  );
}

function memory({ memory_bytes: all, memory_available_bytes: free }: Schemas["HostView"]): string {
  if (all === null) return "–";
  return free === null ? bytes(all) : `${bytes(free)} free of ${bytes(all)}`;
}

const FILTERS: readonly Filter<"search">[] = [
  { name: "search", label: "Search by name or URI", empty: "Name or URI" },
];

export default function Hosts() {
  const [chosen, choose] = useFilters(FILTERS);
  const list = useInfiniteQuery(hostsFound(chosen.search ?? ""));
  return (
    <>
      <PageHead title="Hosts" />
      <PageSection>
        <Filters filters={FILTERS} chosen={chosen} choose={choose} />
        <PagedList
          list={list}
          empty={
            chosen.search ? (
              <Empty title="No host matches" />
            ) : (
              <Empty title="No hosts yet">
                Add one with <code>vmtune host add NAME qemu:///system</code>
              </Empty>
            )
          }
        >
          {(rows) => (
            <ListTable
              label="Hosts"
              columns={COLUMNS}
              rows={rows}
              name={(each) => each.name}
              below="grid-lg"
            />
          )}
        </PagedList>
      </PageSection>
    </>
  );
}

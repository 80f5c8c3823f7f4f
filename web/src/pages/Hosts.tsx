import { Button, PageSection } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import type { Schemas } from "../api/client";
import { hostsFound } from "../api/queries";
import { Empty } from "../components/Async";
import { type Filter, Filters, useFilters } from "../components/Filters";
import { HostStanding, hostMemory } from "../components/HostStanding";
import { type ColumnOf, ListTable, PagedList } from "../components/ListTable";
import { Moment } from "../components/Moment";
import { PageHead } from "../components/PageHead";
import { HostForm } from "./host/HostForm";

const COLUMNS: readonly ColumnOf<Schemas["HostView"]>[] = [
  { title: "Name", cell: (each) => <Link to={`/hosts/${each.name}`}>{each.name}</Link> },
  { title: "State", cell: (each) => <HostStanding host={each} /> },
  {
    title: "VMs",
    text: "short",
    cell: (each) => <Link to={`/vms?host=${encodeURIComponent(each.name)}`}>{each.vm_count}</Link>,
  },
  { title: "Memory", text: "short", cell: hostMemory },
  { title: "Findings", text: "short", cell: (each) => each.finding_count ?? "not known yet" },
  { title: "QEMU", text: "short", cell: (each) => each.qemu_version ?? "–" },
  { title: "libvirt", text: "short", cell: (each) => each.libvirt_version ?? "–" },
  { title: "Service", cell: (each) => each.owner || "–" },
  { title: "Last contact", text: "short", cell: (each) => <Moment at={each.answered_at} /> },
  { title: "URI", text: "breaks", cell: (each) => each.uri },
];

const FILTERS: readonly Filter<"search">[] = [
  { name: "search", label: "Search by name or URI", empty: "Name or URI" },
];

export default function Hosts() {
  const [chosen, choose] = useFilters(FILTERS);
  const list = useInfiniteQuery(hostsFound(chosen.search ?? ""));
  const [adding, setAdding] = useState(false);
  const navigate = useNavigate();
  const add = <Button onClick={() => setAdding(true)}>Add host</Button>;
  return (
    <>
      <PageHead title="Hosts" actions={add} />
      <PageSection>
        <Filters filters={FILTERS} chosen={chosen} choose={choose} />
        <PagedList
          list={list}
          empty={
            chosen.search ? (
              <Empty title="No host matches" />
            ) : (
              <Empty title="No hosts yet">
                Add one here, or with <code>vmtune host add NAME qemu:///system</code>
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
      {adding && (
        <HostForm
          close={() => setAdding(false)}
          done={(made) => navigate(`/hosts/${encodeURIComponent(made.name)}`)}
        />
      )}
    </>
  );
}

import { Button, PageSection } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "react-router";
import type { Schemas } from "../api/client";
import { hostsFound } from "../api/queries";
import { useDialog } from "../components/dialogs/asked";
import { HostStanding, hostMemory } from "../components/labels/HostStanding";
import { Moment } from "../components/labels/Moment";
import { Empty } from "../components/layout/Async";
import { PageHead } from "../components/layout/PageHead";
import { type Filter, Filters, useFilters, useSorting } from "../components/tables/Filters";
import { type ColumnOf, ListTable, PagedList } from "../components/tables/ListTable";
import { HostForm } from "./host/HostForm";

const COLUMNS: readonly ColumnOf<Schemas["HostView"]>[] = [
  {
    title: "Name",
    sort: "name",
    cell: (each) => (
      <Link to={`/hosts/${each.name}`} title={each.uri}>
        {each.name}
      </Link>
    ),
  },
  { title: "State", sort: "state", cell: (each) => <HostStanding host={each} /> },
  {
    title: "VMs",
    sort: "vms",
    text: "short",
    cell: (each) => <Link to={`/vms?host=${encodeURIComponent(each.name)}`}>{each.vm_count}</Link>,
  },
  { title: "Memory", sort: "memory_available", text: "short", cell: hostMemory },
  {
    title: "Findings",
    sort: "findings",
    text: "short",
    cell: (each) => each.finding_count ?? "not known yet",
  },
  { title: "QEMU", text: "short", cell: (each) => each.qemu_version ?? "–" },
  { title: "libvirt", text: "short", cell: (each) => each.libvirt_version ?? "–" },
  {
    title: "Last contact",
    sort: "answered",
    text: "short",
    cell: (each) => <Moment at={each.answered_at} />,
  },
];

/** Where several services share the hosts. */
const SERVICE: ColumnOf<Schemas["HostView"]> = {
  title: "Service",
  cell: (each) => each.owner || "–",
};

const DIALOGS = ["add"] as const;
const STATES: readonly Schemas["HostState"][] = ["up", "unreachable", "unknown"];
const FILTERS: readonly Filter<"search" | "state" | "maintenance">[] = [
  { name: "search", label: "Search by name or URI", empty: "Name or URI" },
  { name: "state", label: "Only hosts in this state", empty: "In any state", choices: STATES },
  {
    name: "maintenance",
    label: "Only hosts in maintenance, or not",
    empty: "In maintenance or not",
    choices: [
      ["true", "In maintenance"],
      ["false", "Not in maintenance"],
    ],
  },
];
const BY = ["name", "state", "vms", "memory_available", "findings", "answered"] as const;
const SORTS = BY.flatMap((by): Schemas["HostSort"][] => [by, `-${by}`]);

export default function Hosts() {
  const [chosen, choose] = useFilters(FILTERS);
  const sorting = useSorting(SORTS, "name");
  const { state, maintenance, search } = chosen;
  const list = useInfiniteQuery(
    hostsFound({
      ...(search ? { search } : {}),
      ...(state ? { state: state as Schemas["HostState"] } : {}),
      ...(maintenance ? { maintenance: maintenance === "true" } : {}),
      sort: sorting.by,
    }),
  );
  const [dialog, open] = useDialog(DIALOGS);
  const navigate = useNavigate();
  const add = <Button onClick={() => open("add")}>Add host</Button>;
  return (
    <>
      <PageHead title="Hosts" actions={add} />
      <PageSection>
        <Filters filters={FILTERS} chosen={chosen} choose={choose} />
        <PagedList
          list={list}
          empty={
            Object.keys(chosen).length > 0 ? (
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
              columns={rows.some((each) => each.owner) ? [...COLUMNS, SERVICE] : COLUMNS}
              rows={rows}
              name={(each) => each.name}
              below="grid-lg"
              sorting={sorting}
              to={(each) => `/hosts/${encodeURIComponent(each.name)}`}
              chosen
            />
          )}
        </PagedList>
      </PageSection>
      {dialog === "add" && (
        <HostForm
          close={() => open(null)}
          done={(made) => navigate(`/hosts/${encodeURIComponent(made.name)}`)}
        />
      )}
    </>
  );
}

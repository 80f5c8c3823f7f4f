import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { Downtime } from "../labels/Downtime";
import { MigrationLabel, startedBy } from "../labels/StateLabel";
import { type ColumnOf, ListTable, type Sorting } from "../tables/ListTable";
import { bytes, duration, moment, utc, way } from "../text/format";

type Migration = Schemas["MigrationView"];

const WHEN: ColumnOf<Migration> = {
  title: "When",
  sort: "created",
  text: "short",
  cell: (each) => (
    <Link to={`/migrations/${each.id}`} title={utc(each.created_at)}>
      {moment(each.created_at)}
    </Link>
  ),
};
const VM: ColumnOf<Migration> = {
  title: "VM",
  sort: "vm",
  cell: (each) => <Link to={`/vms/${each.vm}`}>{each.vm_name}</Link>,
};
const HOW: readonly ColumnOf<Migration>[] = [
  { title: "From, to", cell: way },
  { title: "Profile", cell: (each) => each.profile ?? "none" },
  { title: "Started by", cell: startedBy },
  { title: "State", text: "short", cell: (each) => <Standing migration={each} /> },
  {
    title: "Total time",
    sort: "total_time",
    text: "short",
    cell: (each) => (each.totals ? duration(each.totals.total_time_ms) : "–"),
  },
  {
    title: "Downtime",
    sort: "downtime",
    text: "short",
    cell: (each) => <Downtime migration={each} />,
  },
];
const TRANSFERRED: ColumnOf<Migration> = {
  title: "Transferred",
  text: "short",
  cell: (each) => (each.totals ? bytes(each.totals.transferred_bytes) : "–"),
};
const COLUMNS = {
  "of one VM": [WHEN, ...HOW, TRANSFERRED],
  "of several VMs": [WHEN, VM, ...HOW, TRANSFERRED],
  "in short": [WHEN, VM, ...HOW],
};

/** Its state; and how many go before it, while it waits for its turn. */
function Standing({ migration }: { migration: Migration }) {
  const { state, queued, ahead, intent_broken: broken } = migration;
  return (
    <>
      <MigrationLabel state={state} />
      {queued && ` ${ahead} ahead`}
      {broken && " intent not kept"}
    </>
  );
}

/** Migrations, a row each; *shown* says which there are, and for how much there is room. */
export function MigrationTable({
  migrations,
  shown,
  sorting,
}: {
  migrations: readonly Migration[];
  shown: keyof typeof COLUMNS;
  sorting?: Sorting;
}) {
  return (
    <ListTable
      label="Migrations"
      columns={COLUMNS[shown]}
      rows={migrations}
      name={(each) => each.id}
      below="grid-lg"
      to={(each) => `/migrations/${each.id}`}
      chosen={shown === "of several VMs"}
      {...(sorting ? { sorting } : {})}
    />
  );
}

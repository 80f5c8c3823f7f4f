import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { bytes, duration, way } from "./format";
import { type ColumnOf, ListTable } from "./ListTable";
import { Moment } from "./Moment";
import { MigrationLabel } from "./StateLabel";

type Migration = Schemas["MigrationView"];

const WHEN: ColumnOf<Migration> = {
  title: "When",
  text: "short",
  cell: (each) => (
    <Link to={`/migrations/${each.id}`}>
      <Moment at={each.created_at} />
    </Link>
  ),
};
const VM: ColumnOf<Migration> = {
  title: "VM",
  cell: (each) => <Link to={`/vms/${each.vm}`}>{each.vm_name}</Link>,
};
const HOW: readonly ColumnOf<Migration>[] = [
  { title: "From, to", cell: way },
  {
    title: "Profile",
    cell: (each) => each.profile ?? (each.trigger === "observed" ? "observed" : "none"),
  },
  { title: "State", text: "short", cell: (each) => <MigrationLabel state={each.state} /> },
  {
    title: "Total time",
    text: "short",
    cell: (each) => (each.totals ? duration(each.totals.total_time_ms) : "–"),
  },
  {
    title: "Downtime",
    text: "short",
    cell: (each) => (each.totals ? duration(each.totals.downtime_ms) : "–"),
  },
  {
    title: "Transferred",
    text: "short",
    cell: (each) => (each.totals ? bytes(each.totals.transferred_bytes) : "–"),
  },
];
const OF_ONE_VM = [WHEN, ...HOW];
const OF_SEVERAL = [WHEN, VM, ...HOW];

/** Migrations, a row each. */
export function MigrationTable({
  migrations,
  showVm = false,
}: {
  migrations: readonly Migration[];
  showVm?: boolean;
}) {
  return (
    <ListTable
      label="Migrations"
      columns={showVm ? OF_SEVERAL : OF_ONE_VM}
      rows={migrations}
      name={(each) => each.id}
      below="grid-lg"
    />
  );
}

import type { Schemas } from "../../api/client";
import { StatusLabel } from "../labels/StateLabel";
import { TunableName } from "../labels/TunableName";
import { type ColumnOf, ListTable } from "../tables/ListTable";

type Outcome = Schemas["OutcomeView"];

const COLUMNS: readonly ColumnOf<Outcome>[] = [
  { title: "Tunable", cell: (each) => <TunableName name={each.tunable} /> },
  { title: "Wanted", cell: (each) => each.wanted?.text ?? "unset" },
  { title: "Actual", cell: (each) => each.seen?.text ?? "unknown" },
  {
    title: "Status",
    cell: (each) => (
      <>
        <StatusLabel status={each.status} /> {each.reason}
      </>
    ),
  },
];

/** What was wanted, and what QEMU was seen to run with. */
export function OutcomeTable({ label, outcomes }: { label: string; outcomes: readonly Outcome[] }) {
  return (
    <ListTable label={label} columns={COLUMNS} rows={outcomes} name={(each) => each.tunable} />
  );
}

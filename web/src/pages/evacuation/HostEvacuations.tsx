import { Card, CardBody, CardTitle } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { evacuationsOf } from "../../api/evacuations";
import { type ColumnOf, ListTable } from "../../components/tables/ListTable";
import { More } from "../../components/tables/More";
import { count, moment, utc } from "../../components/text/format";
import { EvacuationLabel } from "./EvacuationVms";

type Evacuation = Schemas["EvacuationView"];

const addressOf = ({ host, id }: Evacuation) =>
  `/hosts/${encodeURIComponent(host)}/evacuations/${id}`;

const COLUMNS: readonly ColumnOf<Evacuation>[] = [
  {
    title: "Created",
    text: "short",
    cell: (each) => (
      <Link to={addressOf(each)} title={utc(each.created_at)}>
        {moment(each.created_at)}
      </Link>
    ),
  },
  { title: "State", text: "short", cell: (each) => <EvacuationLabel state={each.state} /> },
  {
    title: "Moved",
    text: "short",
    cell: (each) => `${count(each.moved)} of ${count(each.total)}`,
  },
  { title: "Remaining", text: "short", cell: (each) => count(each.left) },
];

/** The evacuations of a host, newest first; nothing where there were none. */
export function HostEvacuations({ name }: { name: string }) {
  const list = useInfiniteQuery(evacuationsOf(name));
  const items = (list.data?.pages ?? []).flatMap((page) => page.items);
  if (items.length === 0) return null;
  return (
    <Card>
      <CardTitle component="h2">Evacuations</CardTitle>
      <CardBody>
        <ListTable
          label="Evacuations"
          columns={COLUMNS}
          rows={items}
          name={(each) => each.id}
          to={addressOf}
        />
        <More list={list} />
      </CardBody>
    </Card>
  );
}

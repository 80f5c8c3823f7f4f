import { Card, CardBody, CardTitle, Label, List, ListItem } from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { type ColumnOf, ListTable } from "../../components/tables/ListTable";
import { duration } from "../../components/text/format";

type StepRecord = Schemas["StepRecordView"];

const LOOK: Record<StepRecord["effect"], "success" | "danger" | "warning" | "info"> = {
  pending: "info",
  done: "success",
  refused: "danger",
  unknown: "warning",
};

type Numbered = StepRecord & { place: number };

const COLUMNS: readonly ColumnOf<Numbered>[] = [
  { title: "Step", text: "short", cell: (each) => each.place },
  { title: "After", text: "short", cell: (each) => duration(each.at_ms) },
  { title: "Action", cell: (each) => each.action },
  { title: "Reason", cell: (each) => each.reason },
  {
    title: "Effect",
    cell: (each) => (
      <>
        <Label isCompact status={LOOK[each.effect]}>
          {each.effect}
        </Label>{" "}
        {each.detail}
      </>
    ),
  },
];

/** The profile's convergence steps, and those that came due. */
export function Steps({
  texts,
  records,
}: {
  texts: readonly string[];
  records: readonly StepRecord[];
}) {
  return (
    <Card>
      <CardTitle component="h2">Convergence steps</CardTitle>
      <CardBody>
        {texts.length > 0 && (
          <List component="ol" aria-label="Steps of the profile">
            {texts.map((text) => (
              <ListItem key={text}>{text}</ListItem>
            ))}
          </List>
        )}
        {records.length === 0 ? (
          <p>No steps were executed.</p>
        ) : (
          <ListTable
            label="Executed steps"
            columns={COLUMNS}
            rows={records.map((each, place) => ({ ...each, place: place + 1 }))}
            name={(each) => each.place}
          />
        )}
      </CardBody>
    </Card>
  );
}

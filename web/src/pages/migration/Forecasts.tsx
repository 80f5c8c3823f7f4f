import { Card, CardBody, CardTitle, Content, StackItem } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import { migrationForecasts } from "../../api/forecasts";
import { Labelled } from "../../components/labels/StateLabel";
import { about } from "../../components/migration/outlook";
import { type ColumnOf, ListTable } from "../../components/tables/ListTable";
import { bytes, sentence } from "../../components/text/format";
import { between, corrections } from "../vm/MigrationForecast";

type Kept = Schemas["KeptForecastView"];

/** One figure of a forecast: what was said, and what came of it. */
export interface Compared {
  when: string;
  what: string;
  said: string;
  came: string;
  /** Whether it came as was said; null where that cannot be told. */
  right: boolean | null;
}

const WHEN: Record<Kept["basis"], string> = {
  before: "before the migration",
  running: "while it ran",
};
const ENDS = new Map<boolean | null, string>([
  [true, "yes"],
  [false, "no"],
  [null, "it may not"],
]);

/** The figures of a forecast that there are, each next to what happened. */
export function compared(kept: Kept): Compared[] {
  const when = [WHEN[kept.basis], corrections(kept.corrected_by)].filter(Boolean).join(", ");
  const ended = kept.happened?.ended ?? null;
  const figures = [
    ["Total time", kept.total_ms, kept.happened?.total_ms, about],
    ["Guest stands still", kept.silence_ms, kept.happened?.silence_ms, about],
    ["Sent", kept.sent_bytes, kept.happened?.sent_bytes, bytes],
  ] as const;
  return [
    {
      when,
      what: "Ends by itself",
      said: ENDS.get(kept.ends) ?? "",
      came: ended === null ? open(kept) : ended ? "it did" : "it did not",
      right: ended === null || kept.ends === null ? null : ended === kept.ends,
    },
    ...figures.flatMap(([what, range, came, word]) =>
      range === null
        ? []
        : [
            {
              when,
              what,
              said: between(range, word),
              came: came == null ? "–" : word(came),
              right: came == null ? null : range.low <= came && came <= range.high,
            },
          ],
    ),
  ];
}

/** Why there is no answer. */
const open = (kept: Kept) => (kept.happened === null ? "not known yet" : "cannot be told");

const COLUMNS: readonly ColumnOf<Compared>[] = [
  { title: "Made", cell: (each) => each.when },
  { title: "Figure", cell: (each) => each.what },
  { title: "Forecast", cell: (each) => each.said },
  {
    title: "What happened",
    cell: (each) =>
      each.right === null ? (
        each.came
      ) : (
        <Labelled look={each.right ? "success" : "warning"}>{each.came}</Labelled>
      ),
  },
];

/** A migration's forecasts next to its outcome, or why none was made before it.
 *  @param steered it has an intent, by which it was steered. */
export function Forecasts({ id, steered = false }: { id: string; steered?: boolean }) {
  const found = useQuery(migrationForecasts(id));
  const rows = found.data?.items.flatMap(compared) ?? [];
  const missing = found.data?.none_before ?? null;
  if (rows.length === 0 && missing === null) return null;
  const helped = found.data?.items.some((each) => each.happened?.ended === null);
  return (
    <StackItem>
      <Card>
        <CardTitle component="h2">Forecast and outcome</CardTitle>
        <CardBody>
          {missing !== null && (
            <p>
              No forecast was made before the migration: {missing.message}.
              {missing.remedy && ` ${sentence(missing.remedy)}.`}
            </p>
          )}
          {rows.length > 0 && (
            <ListTable
              label="Forecast and outcome"
              columns={COLUMNS}
              rows={rows}
              name={(each) => `${each.when} ${each.what}`}
            />
          )}
          {steered && rows.length > 0 && (
            <Content component="small">
              These forecasts assume no steering. Intent has what was expected with it.
            </Content>
          )}
          {helped && (
            <Content component="small">
              Forecasts assume no intervention. This migration was changed by a step, or cancelled,
              so they cannot be checked.
            </Content>
          )}
        </CardBody>
      </Card>
    </StackItem>
  );
}

import { PageSection, Stack, StackItem, Title } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../api/client";
import { forecastCheck } from "../api/forecasts";
import { Labelled } from "../components/labels/StateLabel";
import { Async, Empty } from "../components/layout/Async";
import { PageHead } from "../components/layout/PageHead";
import { about } from "../components/migration/outlook";
import { type Filter, Filters, useFilters } from "../components/tables/Filters";
import { type ColumnOf, ListTable } from "../components/tables/ListTable";
import { bytes, count, counted, percent } from "../components/text/format";

type Row = Schemas["ForecastCheckRow"];
type Accuracy = Schemas["AccuracyView"];

const FILTERS: readonly Filter<"profile" | "host">[] = [
  { name: "profile", label: "Only migrations with this profile", empty: "Profile" },
  { name: "host", label: "Only migrations from or to this host", empty: "Host" },
];
const BASES: Record<Schemas["Basis"], string> = {
  before: "Made before the migration",
  running: "Made while it ran",
};
const FEW = 10;

export const share = (of: number | null) => (of === null ? "–" : percent(Math.round(of * 100)));

/** "5 %, 90 % within 31 %". */
export function errors(median: number | null, most: number | null): string {
  return median === null ? "–" : `${share(median)}, 90 % within ${share(most)}`;
}

function Within({ of }: { of: Accuracy | null }) {
  if (of === null) return "–";
  if (of.count < FEW) return share(of.within);
  const held = of.within >= 0.8 && of.within <= 0.97;
  return <Labelled look={held ? "success" : "warning"}>{share(of.within)}</Labelled>;
}

interface FigureRow {
  name: string;
  found: Accuracy;
  word: (value: number) => string;
}

/** The figures of which there is something to say. */
export function figures(row: Row): FigureRow[] {
  const all = [
    { name: "Total time", found: row.total_time, word: about },
    { name: "Guest stands still", found: row.silence, word: about },
    { name: "Sent", found: row.bytes, word: bytes },
  ];
  return all.flatMap(({ found, ...rest }) => (found === null ? [] : [{ found, ...rest }]));
}

const FIGURES: readonly ColumnOf<FigureRow>[] = [
  { title: "Figure", cell: ({ name }) => name },
  { title: "Forecasts", text: "short", cell: ({ found }) => count(found.count) },
  { title: "Error (median)", cell: ({ found }) => errors(found.median_error, found.p90_error) },
  {
    title: "Off by (median)",
    cell: ({ found, word }) => `${word(found.median_off)}, 90 % within ${word(found.p90_off)}`,
  },
  { title: "Within the bounds", cell: ({ found }) => <Within of={found} /> },
  {
    title: "Error without forecasts",
    cell: ({ found }) => errors(found.others_median_error, found.others_p90_error),
  },
];

const groupColumns = (title: string): readonly ColumnOf<Row>[] => [
  { title, cell: (row) => row.key ?? "no profile", value: (row) => row.key },
  {
    title: "Forecasts",
    text: "short",
    cell: (row) => count(row.forecasts),
    value: (row) => row.forecasts,
  },
  { title: "Right that it ends", text: "short", cell: (row) => share(row.ends_right) },
  {
    title: "Error of the time (median)",
    cell: (row) => errors(row.total_time?.median_error ?? null, row.total_time?.p90_error ?? null),
    value: (row) => row.total_time?.p90_error ?? null,
  },
  { title: "Time within", text: "short", cell: (row) => <Within of={row.total_time} /> },
  {
    title: "Silence off by (median)",
    cell: (row) => (row.silence === null ? "–" : about(row.silence.median_off)),
    value: (row) => row.silence?.median_off ?? null,
  },
  { title: "Silence within", text: "short", cell: (row) => <Within of={row.silence} /> },
];

export default function Forecasts() {
  const [chosen, choose] = useFilters(FILTERS);
  const found = useQuery(forecastCheck(chosen));
  return (
    <>
      <PageHead title="Forecasts" trail={[{ to: "/migrations", text: "Migrations" }]}>
        How good the forecasts of ended migrations were. The bounds are meant to hold 90 % of what
        happens. To compare with: what can be told without forecasts, from the remaining memory
        divided by the throughput, and QEMU's expected downtime.
      </PageHead>
      <PageSection>
        <Filters filters={FILTERS} chosen={chosen} choose={choose} />
        <Async query={found} lines={8}>
          {(data) =>
            data.items.length === 0 ? (
              <Empty title="No forecasts yet">
                A migration has one if its VM was measured before, and another once it is known
                whether it ends.
              </Empty>
            ) : (
              <Stack hasGutter>
                {data.items.map((each) => (
                  <Basis key={each.basis} found={each} />
                ))}
                {data.truncated && <StackItem>Older ones were left out.</StackItem>}
              </Stack>
            )
          }
        </Async>
      </PageSection>
    </>
  );
}

/** What is said of all forecasts of a basis, in one line. */
export function ends({ forecasts, ends_known, ends_right, may_not }: Row): string {
  const known =
    ends_known === 0
      ? "whether it ended by itself is known for none"
      : `whether it ended by itself is known for ${count(ends_known)}`;
  const right = ends_right === null ? "" : `, right for ${share(ends_right)}`;
  const unsure = may_not === 0 ? "" : `, ${count(may_not)} said that it may not`;
  return `${counted(forecasts, "forecast")}; ${known}${right}${unsure}.`;
}

function Basis({ found }: { found: Schemas["BasisCheck"] }) {
  const title = BASES[found.basis];
  const shown = figures(found.overall);
  const groups = [
    ["Profile", found.by_profile],
    ["Hosts", found.by_path],
    ["Week of", found.by_week],
  ] as const;
  return (
    <>
      <StackItem>
        <Title headingLevel="h2">{title}</Title>
        {ends(found.overall)}
      </StackItem>
      {shown.length > 0 && (
        <StackItem>
          <ListTable
            label={`${title}: figures`}
            columns={FIGURES}
            rows={shown}
            name={(each) => each.name}
          />
        </StackItem>
      )}
      {groups.map(([by, rows]) => (
        <StackItem key={by}>
          <ListTable
            label={`${title}: by ${by.toLowerCase()}`}
            columns={groupColumns(by)}
            rows={rows}
            name={(row) => row.key ?? "no profile"}
            below="grid-lg"
          />
        </StackItem>
      ))}
    </>
  );
}

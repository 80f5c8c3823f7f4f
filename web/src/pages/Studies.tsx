import { PageSection } from "@patternfly/react-core";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { studies } from "../api/studies";
import { STUDY_STATES, StudyLabel } from "../components/labels/BenchLabels";
import { Moment } from "../components/labels/Moment";
import { Empty } from "../components/layout/Async";
import { type Filter, Filters, useFilters } from "../components/tables/Filters";
import { type ColumnOf, ListTable, PagedList } from "../components/tables/ListTable";
import { count } from "../components/text/format";
import { number } from "../components/text/measure";
import { BenchHead } from "./bench/BenchHead";

type Study = Schemas["StudyView"];
type State = Schemas["StudyState"];

const FILTERS: readonly Filter<"search" | "state">[] = [
  { name: "search", label: "Search by name or UUID", empty: "Name, UUID" },
  {
    name: "state",
    label: "Only studies in this state",
    empty: "In any state",
    choices: Object.keys(STUDY_STATES),
  },
];

const COLUMNS: readonly ColumnOf<Study>[] = [
  { title: "Name", cell: (each) => <Link to={`/bench/studies/${each.id}`}>{each.name}</Link> },
  { title: "State", text: "short", cell: (each) => <StudyLabel state={each.state} /> },
  { title: "Scenario", cell: (each) => each.scenario },
  { title: "Trials", text: "short", cell: (each) => count(each.trials) },
  { title: "Found", cell: (each) => foundBy(each) },
  { title: "Created", text: "short", cell: (each) => <Moment at={each.created_at} /> },
];

/** What a study found, in short. */
export function foundBy({ result }: Pick<Study, "result">): string {
  if (result === null) return "–";
  return result.gain_percent === null
    ? result.finding
    : `${result.finding} by ${number(result.gain_percent)} %`;
}

export default function Studies() {
  const [chosen, choose] = useFilters(FILTERS);
  const { search, state } = chosen;
  const list = useInfiniteQuery({
    ...studies({
      ...(search === undefined ? {} : { search }),
      ...(state === undefined ? {} : { state: [state as State] }),
    }),
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <BenchHead title="Studies">
        Search for better settings of a scenario. Only fresh runs confirm what is better.
      </BenchHead>
      <PageSection>
        <Filters filters={FILTERS} chosen={chosen} choose={choose} />
        <PagedList
          list={list}
          empty={
            search === undefined && state === undefined ? (
              <Empty title="No studies yet">
                Start one on the command line: <code>vmtune tune STUDY.toml</code>
              </Empty>
            ) : (
              <Empty title="No study matches" />
            )
          }
        >
          {(rows) => (
            <ListTable
              label="Studies"
              columns={COLUMNS}
              rows={rows}
              name={(each) => each.id}
              below="grid-lg"
              to={(each) => `/bench/studies/${each.id}`}
              chosen
            />
          )}
        </PagedList>
      </PageSection>
    </>
  );
}

import { List, ListItem, PageSection, Stack, StackItem, Switch } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useSearchParams } from "react-router";
import { type Asked, comparison, comparisonFile, metrics } from "../api/bench";
import { Alert } from "../components/layout/Alert";
import { Async, Empty } from "../components/layout/Async";
import { count, moment, sentence } from "../components/text/format";
import { BenchHead } from "./bench/BenchHead";
import { FileLinks } from "./bench/FileLinks";
import { Parts } from "./bench/Parts";
import { Section } from "./bench/Section";
import { changed } from "./bench/search";
import { Alone } from "./compare/Alone";
import { asked } from "./compare/asked";
import { Choice } from "./compare/Choice";
import { Environments } from "./compare/Environments";
import { MetricTable } from "./compare/MetricTable";
import { PairTable } from "./compare/PairTable";
import { Plots } from "./compare/Plots";
import { Published, publishedNotes } from "./compare/Published";
import { pairsOf, type Report, shownOf } from "./compare/pairs";

const NOTHING: Asked = {};

export default function Compare() {
  const [search] = useSearchParams();
  const wanted = useMemo(() => asked(search), [search]);
  const found = useQuery({
    ...comparison(wanted ?? NOTHING),
    enabled: wanted !== null,
    retry: false,
  });
  return (
    <>
      <BenchHead title="Compare">
        Compare two arms: differences, confidence intervals and verdicts.
      </BenchHead>
      <PageSection>
        <Stack hasGutter>
          <StackItem>
            <Choice />
          </StackItem>
          {wanted === null ? (
            <StackItem>
              <Empty title="No comparison selected">
                Choose a campaign, or runs for both sides.
              </Empty>
            </StackItem>
          ) : (
            <Async query={found} lines={8}>
              {(report) => <Compared report={report} wanted={wanted} />}
            </Async>
          )}
        </Stack>
      </PageSection>
    </>
  );
}

function Compared({ report, wanted }: { report: Report; wanted: Asked }) {
  const [search, setSearch] = useSearchParams();
  const pairs = useMemo(() => pairsOf(report), [report]);
  const chosen = pairs.find((each) => each.id === search.get("pair")) ?? pairs[0];
  const all = search.get("all") === "true";
  const table = useQuery(metrics);
  const shown = useMemo(
    () => (chosen ? shownOf(chosen, all, table.data ?? []) : []),
    [chosen, all, table.data],
  );
  const published = publishedNotes(report.notes);
  const notes = report.notes.filter((each) => !published.includes(each));
  const lost = report.runs.filter((run) => run.failure && Object.keys(run.values).length === 0);
  const expectIt = (field: string) =>
    setSearch((old) => changed(old, { expected: [...old.getAll("expected"), field] }));
  const files = (
    <FileLinks
      label="Export"
      files={[
        { text: "Report", href: comparisonFile(wanted, "html"), opens: true },
        file("Markdown", comparisonFile(wanted, "markdown"), "md", report),
        file("CSV", comparisonFile(wanted, "csv"), "csv", report),
        file("JSON", comparisonFile(wanted, "json"), "json", report),
      ]}
    />
  );
  return (
    <>
      <StackItem>
        <Environments report={report} expectIt={expectIt} />
      </StackItem>
      {report.withheld && (
        <StackItem>
          <Alert isInline variant="warning" title={`No verdicts: ${report.withheld}`} />
        </StackItem>
      )}
      {notes.length > 0 && (
        <StackItem>
          <Section title="Notes">
            <List>
              {notes.map((each) => (
                <ListItem key={each}>{each}</ListItem>
              ))}
            </List>
          </Section>
        </StackItem>
      )}
      {pairs.length > 1 && (
        <StackItem>
          <Section title="Pairs of arms">
            <PairTable
              label="Pairs of arms"
              report={report}
              pairs={pairs}
              {...(chosen ? { chosen: chosen.id } : {})}
              linkTo={(pair) => `?${changed(search, { pair: pair.id })}`}
            />
          </Section>
        </StackItem>
      )}
      {chosen === undefined ? (
        <StackItem>
          <Alone report={report} actions={files} />
        </StackItem>
      ) : (
        <>
          <StackItem>
            <Section title={`${chosen.b} compared to ${chosen.a}, ${chosen.title}`} actions={files}>
              <Switch
                id="all-metrics"
                label={`All ${count(chosen.comparisons.length)} metrics`}
                isChecked={all}
                onChange={(_event, on) =>
                  setSearch((old) => changed(old, { all: on ? "true" : "" }), { replace: true })
                }
              />
              <MetricTable report={report} pair={chosen} comparisons={shown} />
            </Section>
          </StackItem>
          <StackItem>
            <Plots report={report} pair={chosen} shown={shown} />
          </StackItem>
          <StackItem>
            <Published
              report={report}
              pair={chosen}
              chosen={wanted.reference ?? ""}
              choose={(reference) => setSearch((old) => changed(old, { reference }))}
            />
          </StackItem>
        </>
      )}
      <StackItem>
        <Section title="Arms">
          <Parts
            parts={report.arms.map((arm) => ({
              name: arm.name,
              facts: Object.entries(arm.facts ?? {}).map(
                ([term, said]) => [sentence(term), said] as const,
              ),
            }))}
          />
        </Section>
      </StackItem>
      {lost.length > 0 && (
        <StackItem>
          <Section title="Runs without values">
            <List>
              {lost.map((run) => (
                <ListItem key={run.run}>
                  <Link to={`/bench/runs/${run.run}`}>
                    {run.arm}
                    {run.block === null ? "" : `, block ${run.block}`}
                  </Link>
                  : {run.failure}
                </ListItem>
              ))}
            </List>
          </Section>
        </StackItem>
      )}
      <StackItem>
        <p>Computed at {moment(report.made_at)} of the runs that had ended by then.</p>
      </StackItem>
    </>
  );
}

function file(text: string, href: string, ending: string, report: Report) {
  return { text, href, name: `${report.campaign || "comparison"}.${ending}` };
}

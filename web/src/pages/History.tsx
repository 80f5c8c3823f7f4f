import {
  Button,
  Form,
  FormGroup,
  FormSelect,
  FormSelectOption,
  PageSection,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link, useSearchParams } from "react-router";
import { measuredScenarios, metrics } from "../api/bench";
import { changes, type HistoryAsked, history, historyFile, type SetupHistory } from "../api/trends";
import { Chart } from "../components/charts/Chart";
import { Alert } from "../components/layout/Alert";
import { Async, Empty, Failure } from "../components/layout/Async";
import { counted } from "../components/text/format";
import { share } from "../components/text/measure";
import { BenchHead } from "./bench/BenchHead";
import { FileLinks } from "./bench/FileLinks";
import { Section } from "./bench/Section";
import type { Unit } from "./compare/pairs";
import { ChangeTable } from "./history/ChangeTable";
import { plot } from "./history/plot";

const METRIC = "total_time_ms";

/** A metric of a scenario over time. */
export default function History() {
  const [search, setSearch] = useSearchParams();
  const scenario = search.get("scenario") ?? "";
  const metric = search.get("metric") ?? METRIC;
  const choose = (name: string, value: string) =>
    setSearch((old) => {
      const next = new URLSearchParams(old);
      next.set(name, value);
      return next;
    });
  return (
    <>
      <BenchHead title="History">
        A metric of a scenario over time: when it changed, what changed near it, and what was
        decided.
      </BenchHead>
      <PageSection>
        <Stack hasGutter>
          <StackItem>
            <Choice scenario={scenario} metric={metric} choose={choose} />
          </StackItem>
          <StackItem>
            {scenario ? <Shown asked={{ scenario, metric }} /> : <OpenChanges />}
          </StackItem>
        </Stack>
      </PageSection>
    </>
  );
}

function Choice({
  scenario,
  metric,
  choose,
}: HistoryAsked & { choose: (name: string, value: string) => void }) {
  const measured = useInfiniteQuery(measuredScenarios);
  const table = useQuery(metrics);
  const names = measured.data?.pages.flatMap((page) => page.items.map((each) => each.name));
  const all = new Set([...(names ?? []), ...(scenario ? [scenario] : [])]);
  return (
    <Form isHorizontal>
      <FormGroup label="Scenario" fieldId="history-scenario">
        <FormSelect
          id="history-scenario"
          value={scenario}
          onChange={(_event, value) => choose("scenario", value)}
        >
          <FormSelectOption value="" label="Choose a scenario" isDisabled />
          {[...all].sort().map((name) => (
            <FormSelectOption key={name} value={name} label={name} />
          ))}
        </FormSelect>
      </FormGroup>
      <FormGroup label="Metric" fieldId="history-metric">
        <FormSelect
          id="history-metric"
          value={metric}
          onChange={(_event, value) => choose("metric", value)}
        >
          {(table.data ?? [{ name: metric, title: metric }]).map((each) => (
            <FormSelectOption key={each.name} value={each.name} label={each.title} />
          ))}
        </FormSelect>
      </FormGroup>
    </Form>
  );
}

function OpenChanges() {
  const open = useQuery(changes(["open"]));
  return (
    <Async query={open}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty title="No change waits for a decision">
            Choose a scenario to see its history.
          </Empty>
        ) : (
          <Section title="Changes that nobody has triaged">
            <ul>
              {items.map((each) => (
                <li key={each.id}>
                  <Link
                    to={`?${new URLSearchParams({ scenario: each.scenario, metric: each.metric })}`}
                  >
                    {each.metric} of {each.scenario}
                  </Link>
                  : {each.text}
                </li>
              ))}
            </ul>
          </Section>
        )
      }
    </Async>
  );
}

function Shown({ asked }: { asked: HistoryAsked }) {
  const found = useInfiniteQuery({ ...history(asked), retry: false });
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = found;
  if (found.error && !found.data) {
    return <Failure error={found.error} again={() => void found.refetch()} />;
  }
  return (
    <Async query={found} lines={8}>
      {({ pages }) => (
        <Stack hasGutter>
          {pages.flatMap((page) =>
            page.items.map((entry) => (
              <StackItem key={entry.id}>
                <Setup asked={asked} entry={entry} unit={page.unit as Unit} />
              </StackItem>
            )),
          )}
          {hasNextPage && (
            <StackItem>
              <Button
                variant="secondary"
                isLoading={isFetchingNextPage}
                onClick={() => void fetchNextPage()}
              >
                More setups
              </Button>
            </StackItem>
          )}
        </Stack>
      )}
    </Async>
  );
}

/** What a setup is called. */
export function setupTitle(entry: SetupHistory): string {
  const values = Object.entries(entry.texts).map(([name, text]) => `${name} ${text}`);
  const profile = entry.profile ?? "";
  return [profile, ...values, `QEMU ${entry.qemu}`, entry.testbed, entry.host]
    .filter(Boolean)
    .join(", ");
}

export function Setup({
  asked,
  entry,
  unit,
}: {
  asked: HistoryAsked;
  entry: SetupHistory;
  unit: Unit;
}) {
  const option = useMemo(() => plot(entry, unit), [entry, unit]);
  const title = setupTitle(entry);
  const changed = entry.changes ?? [];
  const runs = counted(entry.points.length, "run");
  const lost = entry.lost.length;
  return (
    <Section
      title={title}
      actions={
        <FileLinks
          label={`Export ${title}`}
          files={[
            {
              text: "CSV",
              href: historyFile(asked, entry.id),
              name: `${asked.scenario.replace("/", "-")}-${asked.metric}-${entry.id}.csv`,
            },
          ]}
        />
      }
    >
      {entry.sign && (
        <Alert
          isInline
          variant={entry.sign.strength === "clear" ? "warning" : "info"}
          title={`${entry.sign.strength === "clear" ? "Clear" : "Faint"} early sign: ${entry.sign.text}`}
        />
      )}
      {entry.points.length > 0 && (
        <Chart
          option={option}
          label={`${asked.metric} of ${runs}, ${counted(changed.length, "change")}: ${title}`}
        />
      )}
      {lost > 0 && <p>{counted(lost, "run")} did not complete, without a value.</p>}
      {(entry.completion ?? []).map((each) => (
        <Alert
          key={each.run}
          isInline
          variant={each.after < each.before ? "warning" : "info"}
          title={`${share(each.after)} complete since ${new Date(each.since).toLocaleString()}, before ${share(each.before)}`}
        />
      ))}
      {changed.length > 0 ? (
        <ChangeTable label={`Changes: ${title}`} changes={changed} />
      ) : (
        <p>{entry.reason || `No change in ${runs}.`}</p>
      )}
    </Section>
  );
}

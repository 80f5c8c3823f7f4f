import {
  PageSection,
  Progress,
  ProgressMeasureLocation,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";
import type { Schemas } from "../api/client";
import { analysis, type StudyProgress, study, trials } from "../api/studies";
import { StudyLabel } from "../components/labels/BenchLabels";
import { Moment } from "../components/labels/Moment";
import { Alert } from "../components/layout/Alert";
import { Async, Empty } from "../components/layout/Async";
import { type Fact, FactList } from "../components/layout/Facts";
import { useBenchProgress } from "../components/live/useBenchProgress";
import { PagedList } from "../components/tables/ListTable";
import { count } from "../components/text/format";
import { about, number } from "../components/text/measure";
import { BenchHead } from "./bench/BenchHead";
import { Section } from "./bench/Section";
import { Analysis } from "./study/Analysis";
import { Result } from "./study/Result";
import { StudyActions } from "./study/StudyActions";
import { Trials } from "./study/Trials";

export default function StudyPage() {
  const { id = "" } = useParams();
  const found = useQuery(study(id));
  const record = found.data;
  return (
    <>
      <BenchHead
        title={record?.title || record?.name || "Study"}
        trail={[{ to: "/bench/studies", text: "Studies" }]}
        actions={record && !record.ended && <StudyActions study={record} />}
      />
      <PageSection>
        <Async query={found} lines={8}>
          {(data) => (
            <Stack hasGutter>
              {data.reason && (
                <StackItem>
                  <Alert
                    isInline
                    variant={data.state === "failed" ? "danger" : "warning"}
                    title={`The study is ${data.state}`}
                  >
                    {data.reason}
                  </Alert>
                </StackItem>
              )}
              {!data.ended && (
                <StackItem>
                  <HowFar study={data} />
                </StackItem>
              )}
              {data.result !== null && (
                <StackItem>
                  <Result result={data.result} kind={data.kind} campaign={data.campaign} />
                </StackItem>
              )}
              {data.trials > 0 && (
                <StackItem>
                  <Analysed id={data.id} kind={data.kind} />
                </StackItem>
              )}
              <StackItem>
                <Tried study={data} />
              </StackItem>
              <StackItem>
                <Section title="Order">
                  <FactList spread facts={factsOf(data)} />
                </Section>
              </StackItem>
            </Stack>
          )}
        </Async>
      </PageSection>
    </>
  );
}

/** How far it is. Its height never changes, so that nothing jumps. */
function HowFar({ study: data }: { study: Schemas["StudyView"] }) {
  const live = useBenchProgress<StudyProgress>("study", data.id);
  return (
    <Progress
      title={`${count(data.used.runs)} runs, ${count(data.trials)} trials`}
      value={Math.round((live?.share ?? 0) * 100)}
      measureLocation={ProgressMeasureLocation.outside}
      helperText={data.state === "paused" || live === null ? data.state : whereIs(live)}
    />
  );
}

function whereIs(live: StudyProgress): string {
  if (live.waits !== undefined) return live.waits;
  if (live.phase === "confirming") return `confirming, ${live.done} of ${live.total} runs`;
  return `searching, block ${live.block}, trial ${live.trial} (${live.origin})`;
}

function Analysed({ id, kind }: { id: string; kind: Schemas["ScenarioKind"] }) {
  const found = useQuery(analysis(id));
  return (
    <Async query={found} lines={4}>
      {(data) => <Analysis found={data} kind={kind} />}
    </Async>
  );
}

function Tried({ study: data }: { study: Schemas["StudyView"] }) {
  const list = useInfiniteQuery(trials(data.id));
  return (
    <Section title="Trials">
      <PagedList list={list} empty={<Empty title="No trial has run yet" />}>
        {(rows) => <Trials rows={rows} kind={data.kind} />}
      </PagedList>
    </Section>
  );
}

function factsOf(data: Schemas["StudyDetail"]): Fact[] {
  const breaches = Object.entries(data.breaches).map(([limit, times]) => `${limit}: ${times}`);
  return [
    ["State", <StudyLabel key="state" state={data.state} />],
    ["Name", data.name],
    ["Scenario", data.scenario],
    ["Objective", data.objective],
    ["Varies", data.space.join(", ")],
    ["Budget", budgetOf(data)],
    ["Used", `${count(data.used.runs)} runs, ${number(data.used.seconds / 60)} min`],
    ["Cannot run", `${count(data.pruned)} trials`],
    ["Breaches of limits", breaches.join(", ") || "none"],
    ["Machine", data.host],
    ["Created", <Moment key="created" at={data.created_at} />],
    ["Ended", <Moment key="ended" at={data.ended_at} />],
  ];
}

function budgetOf({ budget_runs, budget_seconds }: Schemas["StudyView"]): string {
  const parts = [
    budget_runs === null ? "" : `${count(budget_runs)} runs`,
    budget_seconds === null ? "" : about(budget_seconds),
  ];
  return parts.filter(Boolean).join(", ");
}

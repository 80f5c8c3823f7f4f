import {
  Button,
  Flex,
  FlexItem,
  PageSection,
  Progress,
  ProgressMeasureLocation,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { Link, useParams } from "react-router";
import {
  type CampaignProgress,
  campaign,
  campaignPlan,
  cancelCampaign,
  metrics,
  pauseCampaign,
  resumeCampaign,
} from "../api/bench";
import type { Schemas } from "../api/client";
import type { LiveEvent } from "../api/live";
import { Confirm } from "../components/dialogs/Confirm";
import { useToasts } from "../components/dialogs/toasts";
import { CampaignLabel } from "../components/labels/BenchLabels";
import { Moment } from "../components/labels/Moment";
import { Alert } from "../components/layout/Alert";
import { Async } from "../components/layout/Async";
import { type Fact, FactList } from "../components/layout/Facts";
import { useLiveEvents } from "../components/live/live";
import { useBenchProgress } from "../components/live/useBenchProgress";
import { More } from "../components/tables/More";
import { count } from "../components/text/format";
import { about, number } from "../components/text/measure";
import { BenchHead } from "./bench/BenchHead";
import { Section } from "./bench/Section";
import { Arms } from "./campaign/Arms";
import { BlockGrid } from "./campaign/BlockGrid";
import { gridsOf } from "./campaign/grid";
import { Verdicts } from "./campaign/Verdicts";

export default function CampaignPage() {
  const { id = "" } = useParams();
  const found = useQuery(campaign(id));
  const record = found.data;
  useOutdatedByRuns(record?.id);
  return (
    <>
      <BenchHead
        title={record?.title || record?.name || "Campaign"}
        trail={[{ to: "/bench/campaigns", text: "Campaigns" }]}
        actions={record && !record.ended && <Actions campaign={record} />}
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
                    title={
                      data.state === "paused"
                        ? "The campaign is paused"
                        : `The campaign is ${data.state}`
                    }
                  >
                    {data.reason}
                  </Alert>
                </StackItem>
              )}
              {!data.ended && (
                <StackItem>
                  <HowFar campaign={data} />
                </StackItem>
              )}
              {data.ended && (
                <StackItem>
                  <Verdicts campaign={data} />
                </StackItem>
              )}
              <StackItem>
                <Blocks campaign={data} />
              </StackItem>
              <StackItem>
                <Section title="Plan">
                  <Plan campaign={data} />
                </Section>
              </StackItem>
              <StackItem>
                <Arms campaign={data} />
              </StackItem>
            </Stack>
          )}
        </Async>
      </PageSection>
    </>
  );
}

/** A run that begins or ends changes how far its campaign is, of which no event tells. */
function useOutdatedByRuns(id: string | undefined): void {
  const queries = useQueryClient();
  const take = useCallback(
    (event: LiveEvent) => {
      if (event.topic !== "run" || event.id === null || event.data.campaign !== id) return;
      void queries.invalidateQueries({ queryKey: ["campaign", "one"] });
    },
    [queries, id],
  );
  useLiveEvents(take);
}

function Actions({ campaign: { id, state } }: { campaign: Schemas["CampaignView"] }) {
  const [asked, setAsked] = useState<"pause" | "cancel" | null>(null);
  const toasts = useToasts();
  const pause = useMutation({
    mutationFn: () => pauseCampaign(id),
    onSuccess: () => toasts.done("Campaign paused", "The current run continues to its end."),
    onError: (error) => toasts.failed("Pausing failed", error),
  });
  const resume = useMutation({
    mutationFn: () => resumeCampaign(id),
    onSuccess: () => toasts.done("Campaign resumed"),
    onError: (error) => toasts.failed("Resuming failed", error),
  });
  const cancel = useMutation({
    mutationFn: () => cancelCampaign(id),
    onSuccess: () => toasts.done("Campaign cancelled", "Completed runs are kept."),
    onError: (error) => toasts.failed("Cancelling failed", error),
  });
  return (
    <Flex>
      <FlexItem>
        {state === "paused" ? (
          <Button isLoading={resume.isPending} onClick={() => resume.mutate()}>
            Resume
          </Button>
        ) : (
          <Button variant="secondary" isLoading={pause.isPending} onClick={() => setAsked("pause")}>
            Pause
          </Button>
        )}
      </FlexItem>
      <FlexItem>
        <Button variant="danger" isLoading={cancel.isPending} onClick={() => setAsked("cancel")}>
          Cancel campaign
        </Button>
      </FlexItem>
      {asked === "pause" && (
        <Confirm
          title="Pause this campaign?"
          action="Pause"
          close={() => setAsked(null)}
          confirm={() => pause.mutate()}
        >
          No run is begun until somebody resumes it; the one that is under way runs to its end.
        </Confirm>
      )}
      {asked === "cancel" && (
        <Confirm
          title="Cancel this campaign?"
          action="Cancel campaign"
          danger
          close={() => setAsked(null)}
          confirm={() => cancel.mutate()}
        >
          It cannot be resumed. The run that is under way is ended, and what was measured stays: it
          can be compared, but with fewer blocks it may not come to a verdict.
        </Confirm>
      )}
    </Flex>
  );
}

/** How far it is. Its height never changes, so that nothing jumps. */
function HowFar({ campaign: data }: { campaign: Schemas["CampaignView"] }) {
  const live = useBenchProgress<CampaignProgress>("campaign", data.id);
  const progress = live !== null && live.done >= data.done ? live : null;
  const left = progress?.remaining_s ?? data.remaining_s;
  const share = progress?.share ?? data.done / data.total;
  const done = progress?.done ?? data.done;
  const where =
    progress === null || data.state === "paused"
      ? data.state
      : `${progress.arm}${progress.cell ? `, ${progress.cell}` : ""}, ${
          progress.block === 0 ? "warm-up" : `block ${progress.block} of ${data.blocks}`
        }`;
  return (
    <Progress
      title={`${count(done)} of ${count(data.total)} runs`}
      value={Math.round(share * 100)}
      measureLocation={ProgressMeasureLocation.outside}
      helperText={left === null ? where : `${where} · about ${about(left)} left`}
    />
  );
}

function Blocks({ campaign: data }: { campaign: Schemas["CampaignView"] }) {
  const list = useInfiniteQuery(campaignPlan(data.id));
  const { arms, blocks } = data;
  const grids = useMemo(
    () => gridsOf(list.data?.pages.flatMap((page) => page.items) ?? [], arms, blocks),
    [list.data, arms, blocks],
  );
  return (
    <Section title="Blocks" actions={<Link to={`/bench/runs?campaign=${data.id}`}>All runs</Link>}>
      <Async query={list}>{() => <BlockGrid grids={grids} ended={data.ended} />}</Async>
      <More list={list} />
    </Section>
  );
}

function Plan({ campaign: data }: { campaign: Schemas["CampaignDetail"] }) {
  const { forecast } = data;
  const table = useQuery(metrics);
  const primary = table.data?.find((each) => each.name === data.primary_metric);
  const facts: Fact[] = [
    ["State", <CampaignLabel key="state" state={data.state} />],
    ["Name", data.name],
    ["Scenario", scenarioOf(data)],
    ["Blocks", count(data.blocks)],
    ["Primary metric", primary?.title ?? data.primary_metric],
    ["Margin", `${number(data.margin_percent)} %`],
    ["Random seed", <code key="seed">{data.seed}</code>],
    [
      "Detectable difference",
      forecast.detectable_percent === null
        ? "none: too few blocks"
        : `from ${number(forecast.detectable_percent)} %`,
    ],
    ["Expected noise", `${number(forecast.noise_percent)} %: ${forecast.noise_reason}`],
    ["Expected duration", about(forecast.duration_s)],
    ["Machine", data.host],
    ["Created", <Moment key="created" at={data.created_at} />],
    ["Ended", <Moment key="ended" at={data.ended_at} />],
  ];
  return <FactList spread facts={facts} />;
}

function scenarioOf(data: Schemas["CampaignDetail"]): string {
  const scenario = data.campaign.scenario as { name?: string } | undefined;
  return scenario?.name ?? "–";
}

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
import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { useParams } from "react-router";
import type { Schemas } from "../api/client";
import {
  changeEvacuation,
  type EvacuationProgress,
  evacuation,
  evacuationProgress,
  leavingVms,
} from "../api/evacuations";
import type { LiveEvent } from "../api/live";
import { Confirm } from "../components/dialogs/Confirm";
import { useToasts } from "../components/dialogs/toasts";
import { Moment } from "../components/labels/Moment";
import { Alert } from "../components/layout/Alert";
import { Async } from "../components/layout/Async";
import { type Fact, Facts } from "../components/layout/Facts";
import { PageHead } from "../components/layout/PageHead";
import { useLiveEvents } from "../components/live/live";
import { More } from "../components/tables/More";
import { bytes, count } from "../components/text/format";
import { about } from "../components/text/measure";
import { EvacuationLabel, EvacuationVms } from "./evacuation/EvacuationVms";
import { LOCAL_DISKS } from "./evacuation/localDisks";
import { SafeToReboot } from "./host/SafeToReboot";

type Record = Schemas["EvacuationView"];

export default function EvacuationPage() {
  const { name = "", id = "" } = useParams();
  const found = useQuery(evacuation(name, id));
  const vms = useInfiniteQuery(leavingVms(name, id));
  const progress = useEvacuationProgress(id);
  const record = found.data;
  return (
    <>
      <PageHead
        title={`Evacuation of ${name}`}
        trail={[
          { to: "/hosts", text: "Hosts" },
          { to: `/hosts/${encodeURIComponent(name)}`, text: name },
        ]}
        actions={record && !record.ended && <Actions record={record} />}
      />
      <PageSection>
        <Async query={found} lines={8}>
          {(data) => (
            <Stack hasGutter>
              {data.reason && (
                <StackItem>
                  <Alert isInline variant="danger" title={data.reason} />
                </StackItem>
              )}
              {!data.ended && (
                <StackItem>
                  <HowFar record={data} progress={progress} />
                </StackItem>
              )}
              {data.ended && data.left > 0 && (
                <StackItem>
                  <Alert
                    isInline
                    variant="warning"
                    title={`${count(data.left)} of its VMs remain on ${data.host}; see the reasons below`}
                  />
                </StackItem>
              )}
              {data.ended && (
                <StackItem>
                  <SafeToReboot name={name} />
                </StackItem>
              )}
              <StackItem>
                <Async query={vms} lines={6}>
                  {(list) => (
                    <EvacuationVms
                      vms={list.pages.flatMap((page) => page.items)}
                      shares={progress?.vms ?? {}}
                    />
                  )}
                </Async>
                <More list={vms} />
              </StackItem>
              <StackItem>
                <Facts title="Request" facts={factsOf(data)} spread />
              </StackItem>
            </Stack>
          )}
        </Async>
      </PageSection>
    </>
  );
}

function useEvacuationProgress(id: string): EvacuationProgress | null {
  const [latest, setLatest] = useState<{ id: string; progress: EvacuationProgress } | null>(null);
  const take = useCallback(
    (event: LiveEvent) => {
      const progress = evacuationProgress(event, id);
      if (progress !== null) setLatest({ id, progress });
    },
    [id],
  );
  useLiveEvents(take);
  return latest?.id === id ? latest.progress : null;
}

/** How far it is. Its height never changes, so that nothing jumps. */
function HowFar({ record, progress }: { record: Record; progress: EvacuationProgress | null }) {
  const share = progress?.share ?? (record.total === 0 ? 0 : record.finished / record.total);
  const left = progress?.remaining_s ?? null;
  const told = left === null || record.state === "paused" ? "" : ` · about ${about(left)} left`;
  return (
    <Progress
      aria-label="Progress of the evacuation"
      title={`${count(record.moved)} of ${count(record.total)} VMs moved`}
      value={Math.round(share * 100)}
      measureLocation={ProgressMeasureLocation.outside}
      helperText={`${record.state}${told}`}
    />
  );
}

function Actions({ record: { id, host, state } }: { record: Record }) {
  const [asked, setAsked] = useState(false);
  const toasts = useToasts();
  const change = useMutation({
    mutationFn: (what: "pause" | "resume" | "cancel") => changeEvacuation(host, id, what),
    onSuccess: (_made, what) =>
      toasts.done(
        {
          pause: "Evacuation paused",
          resume: "Evacuation resumed",
          cancel: "Cancelling the evacuation",
        }[what],
      ),
    onError: (error, what) =>
      toasts.failed(
        {
          pause: "Pausing failed",
          resume: "Resuming failed",
          cancel: "Cancelling failed",
        }[what],
        error,
      ),
  });
  const pausing = state === "paused" ? "resume" : "pause";
  return (
    <Flex>
      <FlexItem>
        <Button
          variant={state === "paused" ? "primary" : "secondary"}
          isLoading={change.isPending}
          onClick={() => change.mutate(pausing)}
        >
          {state === "paused" ? "Resume" : "Pause"}
        </Button>
      </FlexItem>
      <FlexItem>
        <Button variant="danger" onClick={() => setAsked(true)}>
          Cancel evacuation
        </Button>
      </FlexItem>
      {asked && (
        <Confirm
          title="Cancel this evacuation?"
          action="Cancel evacuation"
          danger
          close={() => setAsked(false)}
          confirm={() => change.mutate("cancel")}
        >
          Running migrations are aborted and waiting ones are dropped: their VMs stay on {host} and
          keep running. VMs that have moved stay on their destination. To let running migrations
          finish, pause the evacuation instead.
        </Confirm>
      )}
    </Flex>
  );
}

function factsOf(record: Record): Fact[] {
  return [
    ["State", <EvacuationLabel key="state" state={record.state} />],
    ["To", record.destinations.length > 0 ? record.destinations.join(", ") : "any eligible host"],
    ["Order", record.order],
    ["VMs on local disks", LOCAL_DISKS[record.local_disks]],
    ["Profile", record.profile ?? "as assigned"],
    ["Intent", record.intent?.text ?? "each profile's, if it has one"],
    ["Concurrent migrations", record.max_outgoing ?? "the service's limit"],
    ["Stops after failures", record.stop_after_failures ?? "never"],
    ["Moved", `${bytes(record.moved_bytes)} of ${bytes(record.total_bytes)}`],
    ["Created", <Moment key="created" at={record.created_at} />],
    ["Ended", <Moment key="ended" at={record.ended_at} />],
  ];
}

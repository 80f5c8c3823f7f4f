import { Button, PageSection, Stack, StackItem } from "@patternfly/react-core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams } from "react-router";
import { abortMigration } from "../api/actions";
import type { Schemas } from "../api/client";
import { migration, samples } from "../api/queries";
import { Confirm } from "../components/dialogs/Confirm";
import { useToasts } from "../components/dialogs/toasts";
import { Downtime } from "../components/labels/Downtime";
import { Moment } from "../components/labels/Moment";
import { MigrationLabel, startedBy } from "../components/labels/StateLabel";
import { Alert } from "../components/layout/Alert";
import { Async } from "../components/layout/Async";
import { type Fact, Facts } from "../components/layout/Facts";
import { PageHead } from "../components/layout/PageHead";
import { Problems } from "../components/layout/Problems";
import { useProgress } from "../components/live/useProgress";
import { MigrationProgress, SpokenProgress } from "../components/migration/MigrationProgress";
import { bytes, count, duration, sentence, way } from "../components/text/format";
import { Change } from "./migration/Change";
import { Disks } from "./migration/Disks";
import { Forecasts } from "./migration/Forecasts";
import { Intent } from "./migration/Intent";
import { standing } from "./migration/now";
import { Outcomes } from "./migration/Outcomes";
import { Reaper } from "./migration/Reaper";
import { Recover } from "./migration/Recover";
import { Samples } from "./migration/Samples";
import { Steering } from "./migration/Steering";
import { Steps } from "./migration/Steps";
import { waited } from "./migration/waited";

/** Problems that the page tells in another way: `missing_flags`, and what `Recover` says. */
const TOLD = new Set(["begun_without", "postcopy_paused", "recovery_not_offered"]);

type Record = Schemas["MigrationView"];

export default function MigrationPage() {
  const { id = "" } = useParams();
  const found = useQuery(migration(id));
  const progress = useProgress(id).get(id);
  const latest = useQuery({ ...samples(id), enabled: false }).data?.at(-1); // what Samples fetches
  const [aborting, setAborting] = useState(false);
  const toasts = useToasts();
  const abort = useMutation({
    mutationFn: () => abortMigration(id),
    onSuccess: () => toasts.done("Abort requested"),
    onError: (error) => toasts.failed("The abort failed", error),
  });
  const record = found.data;
  const steered = record?.step_records.filter((each) => each.steering) ?? [];
  const stepped = record?.step_records.filter((each) => !each.steering) ?? [];
  const paused = record?.state === "postcopy-paused";
  const inPostcopy =
    paused || ((progress?.status ?? latest?.status)?.startsWith("postcopy") ?? false);
  return (
    <>
      <PageHead
        title={record ? `${record.vm_name}: ${way(record)}` : "Migration"}
        trail={[{ to: "/migrations", text: "Migrations" }]}
        actions={
          record &&
          !record.ended && (
            <Button
              variant="danger"
              isDisabled={inPostcopy || record.abort === "requested"}
              onClick={() => setAborting(true)}
            >
              {inPostcopy
                ? "Post-copy cannot be aborted"
                : record.abort === "requested"
                  ? "Aborting"
                  : "Abort"}
            </Button>
          )
        }
      />
      <PageSection>
        <Async query={found}>
          {(data) => (
            <Stack hasGutter>
              {data.queued && (
                <StackItem>
                  <Alert
                    isInline
                    variant="info"
                    title={`${data.vm_name} waits in the queue: ${data.waiting_reason}`}
                  />
                </StackItem>
              )}
              {!data.ended && !paused && !data.queued && (
                <>
                  <StackItem>
                    <MigrationProgress title={`${data.vm_name} is migrating`} progress={progress} />
                    <SpokenProgress progress={progress} />
                  </StackItem>
                  <StackItem>
                    <Facts title="Now" facts={standing(data, progress, latest)} spread />
                  </StackItem>
                  {!inPostcopy && (
                    <StackItem>
                      <Change
                        id={id}
                        controls={data.controls}
                        needs={progress?.outlook?.needs ?? null}
                      />
                    </StackItem>
                  )}
                </>
              )}
              {data.disks.length > 0 && (
                <StackItem>
                  <Disks record={data} live={progress?.disks} />
                </StackItem>
              )}
              {paused && (
                <StackItem>
                  <Recover record={data} latest={latest} />
                </StackItem>
              )}
              {data.failure && (
                <StackItem>
                  <Alert
                    isInline
                    variant={data.state === "failed" ? "danger" : "warning"}
                    title={sentence(data.failure)}
                  />
                </StackItem>
              )}
              {data.abort === "too late" && (
                <StackItem>
                  <Alert
                    isInline
                    variant="info"
                    title="The abort was too late: the guest runs on the destination"
                  />
                </StackItem>
              )}
              <Problems problems={data.problems.filter((each) => !TOLD.has(each.code))} />
              {data.missing_flags.length > 0 && (
                <StackItem>
                  <Alert
                    isInline
                    variant="warning"
                    title="Started without some values of its profile"
                  >
                    These virsh options would have set them:{" "}
                    <code>{data.missing_flags.join(" ")}</code>
                  </Alert>
                </StackItem>
              )}
              <StackItem>
                <Facts title="Result" facts={result(data)} spread />
              </StackItem>
              <Forecasts id={id} steered={data.intent != null && !data.intent.shadow} />
              {data.intent && (
                <StackItem>
                  <Intent intent={data.intent} state={data.state} />
                </StackItem>
              )}
              {data.intent && (steered.length > 0 || data.active_at !== null) && (
                <StackItem>
                  <Steering records={steered} shadow={data.intent.shadow} ended={data.ended} />
                </StackItem>
              )}
              <StackItem>
                <Outcomes outcomes={data.outcomes} />
              </StackItem>
              {data.reaper && (
                <StackItem>
                  <Reaper
                    id={id}
                    reaper={data.reaper}
                    steps={data.step_records}
                    running={!data.ended}
                  />
                </StackItem>
              )}
              {data.step_texts.length + stepped.length > 0 && (
                <StackItem>
                  <Steps texts={data.step_texts} records={stepped} />
                </StackItem>
              )}
              <StackItem>
                <Samples record={data} />
              </StackItem>
            </Stack>
          )}
        </Async>
      </PageSection>
      {aborting && (
        <Confirm
          title="Abort this migration?"
          action="Abort"
          danger
          impossible={inPostcopy}
          close={() => setAborting(false)}
          confirm={() => abort.mutate()}
        >
          {inPostcopy
            ? "The migration has switched to post-copy: the guest runs on the destination, and part of its memory is still on the source. Aborting would lose the guest, so QEMU refuses it."
            : "The guest stays on the source and keeps running. After the switch to post-copy a migration cannot be aborted: the guest runs on the destination, and QEMU refuses."}
        </Confirm>
      )}
    </>
  );
}

function result(record: Record): Fact[] {
  const totals = record.totals;
  return [
    ["State", <MigrationLabel key="state" state={record.state} />],
    ...(record.queued
      ? [["Queue", `${count(record.ahead ?? 0)} ahead; ${record.waiting_reason}`] as Fact]
      : []),
    [
      "VM",
      <Link key="vm" to={`/vms/${record.vm}`}>
        {record.vm_name}
      </Link>,
    ],
    ["Profile", profileOf(record)],
    ["Started by", record.trigger === "observed" ? "others (observed)" : startedBy(record)],
    ["Created", <Moment key="created" at={record.created_at} />],
    ["Active", <Moment key="active" at={record.active_at} />],
    ["Ended", <Moment key="ended" at={record.ended_at} />],
    ...(record.overrides.length > 0
      ? [["Blockers overridden", record.overrides.join(", ")] as Fact]
      : []),
    ...(totals ? totalsOf(totals, record) : []),
    ...waited(record.postcopy),
  ];
}

function profileOf(record: Record) {
  if (!record.profile) {
    if (record.intent) return "none: its intent chose the values";
    return record.outcomes.length > 0 ? "none: values of its own" : "none: untuned";
  }
  return (
    <Link to={`/profiles/${record.profile}`}>
      {record.profile} r{record.revision}
    </Link>
  );
}

function totalsOf(totals: NonNullable<Record["totals"]>, record: Record): Fact[] {
  return [
    ["Total time", duration(totals.total_time_ms)],
    ["Downtime (QEMU)", <Downtime key="downtime" migration={record} />],
    ...(totals.setup_time_ms === null
      ? []
      : [["Setup time", duration(totals.setup_time_ms)] as Fact]),
    ["Transferred", bytes(totals.transferred_bytes)],
    ["Iterations", count(totals.iterations)],
    ...(totals.missed_zero_copy
      ? [["Zero-copy sends that were copied", count(totals.missed_zero_copy)] as Fact]
      : []),
  ];
}

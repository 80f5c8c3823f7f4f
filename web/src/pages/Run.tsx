import { Button, PageSection, Stack, StackItem } from "@patternfly/react-core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Fragment, useState } from "react";
import { Link, useParams } from "react-router";
import { cancelRun, run as runOf } from "../api/bench";
import type { Schemas } from "../api/client";
import { Confirm } from "../components/dialogs/Confirm";
import { useToasts } from "../components/dialogs/toasts";
import { RunLabel } from "../components/labels/BenchLabels";
import { Moment } from "../components/labels/Moment";
import { TunableName } from "../components/labels/TunableName";
import { Alert } from "../components/layout/Alert";
import { Async } from "../components/layout/Async";
import { type Fact, FactList } from "../components/layout/Facts";
import { bytes, count, duration } from "../components/text/format";
import { BenchHead } from "./bench/BenchHead";
import { Downloads } from "./bench/Downloads";
import { flat } from "./bench/flat";
import { RunOnce } from "./bench/RunOnce";
import { Section } from "./bench/Section";
import { TESTBEDS } from "./bench/TestbedAndQemu";
import { Outcomes } from "./migration/Outcomes";
import { Steps } from "./migration/Steps";
import { Boot } from "./run/Boot";
import { Load } from "./run/Load";
import { Metrics } from "./run/Metrics";
import { RunningRun } from "./run/RunningRun";
import { RunReaper } from "./run/RunReaper";
import { RunSeries } from "./run/RunSeries";
import { Sends } from "./run/Sends";
import { Updates } from "./run/Updates";

export default function RunPage() {
  const { id = "" } = useParams();
  const found = useQuery(runOf(id));
  const [cancelling, setCancelling] = useState(false);
  const toasts = useToasts();
  const cancel = useMutation({
    mutationFn: () => cancelRun(id),
    onSuccess: () => toasts.done("Cancelling the run: its processes are being stopped"),
    onError: (error) => toasts.failed("Cancelling failed", error),
  });
  const run = found.data;
  return (
    <>
      <BenchHead
        title={run ? `Run of ${run.scenario}` : "Run"}
        trail={[{ to: "/bench/runs", text: "Runs" }]}
        actions={
          run &&
          !run.ended && (
            <Button variant="danger" onClick={() => setCancelling(true)}>
              Cancel run
            </Button>
          )
        }
      />
      <PageSection>
        <Async query={found} lines={8}>
          {(data) => <RunBody run={data} />}
        </Async>
      </PageSection>
      {cancelling && (
        <Confirm
          title="Cancel this run?"
          action="Cancel run"
          danger
          close={() => setCancelling(false)}
          confirm={() => cancel.mutate()}
        >
          Its processes are stopped. An incomplete measurement is not kept
          {run?.slot ? "; the campaign repeats the run" : ""}.
        </Confirm>
      )}
    </>
  );
}

function RunBody({ run }: { run: Schemas["RunDetail"] }) {
  const record = run.record;
  return (
    <Stack hasGutter>
      {!run.ended && (
        <StackItem>
          <RunningRun run={run} />
        </StackItem>
      )}
      {run.failure && (
        <StackItem>
          <Alert
            isInline
            variant={run.state === "failed" ? "danger" : "warning"}
            title={run.failure}
          />
        </StackItem>
      )}
      <StackItem>
        <Section title="Result" actions={record ? <Downloads run={run} /> : null}>
          <FactList spread facts={[...facts(run), ...totals(record?.totals ?? null)]} />
        </Section>
      </StackItem>
      {run.ended && (
        <StackItem>
          <Metrics values={run.metrics} />
        </StackItem>
      )}
      {record && run.kind === "migration" && (
        <StackItem>
          <RunSeries run={run} />
        </StackItem>
      )}
      {record?.sends && (
        <StackItem>
          <Sends sends={record.sends} />
        </StackItem>
      )}
      {record?.block && (
        <StackItem>
          <Load run={run} block={record.block} />
        </StackItem>
      )}
      {record?.boot && (
        <StackItem>
          <Boot boot={record.boot} />
        </StackItem>
      )}
      {record?.srcu && (
        <StackItem>
          <Updates srcu={record.srcu} />
        </StackItem>
      )}
      {record && record.outcomes.length > 0 && (
        <StackItem>
          <Outcomes outcomes={record.outcomes} />
        </StackItem>
      )}
      {record?.reaper && (
        <StackItem>
          <RunReaper id={run.id} reaper={record.reaper} />
        </StackItem>
      )}
      {record && record.steps.length > 0 && (
        <StackItem>
          <Steps texts={[]} records={record.steps} />
        </StackItem>
      )}
      <StackItem>
        <Section title="Values">
          {Object.keys(run.texts).length === 0 ? (
            <p>Nothing: QEMU&apos;s defaults held.</p>
          ) : (
            <FactList
              spread
              facts={Object.entries(run.texts).map(([name, text]) => [
                name,
                text,
                <TunableName key={name} name={name} />,
              ])}
            />
          )}
        </Section>
      </StackItem>
      <StackItem>
        <Section title="Environment">
          {Object.keys(run.environment).length === 0 ? (
            <p>It is recorded when the run starts.</p>
          ) : (
            <>
              <FactList spread facts={flat(run.environment)} />
              <p>
                Fingerprint {run.fingerprint}.{" "}
                <Link to={`/bench/runs?fingerprint=${run.fingerprint}`}>
                  Runs in this environment
                </Link>
              </p>
            </>
          )}
        </Section>
      </StackItem>
      {Object.keys(run.conditions).length > 0 && (
        <StackItem>
          <Section title="Load of the machine at the start">
            <FactList spread facts={flat(run.conditions)} />
          </Section>
        </StackItem>
      )}
      <StackItem>
        <Section title="Scenario">
          <FactList spread facts={flat({ ...run.setup, values: undefined, why: undefined })} />
        </Section>
      </StackItem>
      {run.ended && !run.vm && Object.keys(run.setup).length > 0 && (
        <StackItem>
          <RunOnce scenario={run.setup} title="Run it again" />
        </StackItem>
      )}
    </Stack>
  );
}

function facts(run: Schemas["RunDetail"]): Fact[] {
  return [
    ["State", <RunLabel key="state" state={run.state} />],
    ["Scenario", run.scenario],
    ...(run.slot
      ? ([
          [
            "Campaign",
            <Link key="campaign" to={`/bench/campaigns/${run.slot.campaign}`}>
              arm {run.slot.arm}, {run.slot.block === 0 ? "warm-up" : `block ${run.slot.block}`}
            </Link>,
          ],
        ] as Fact[])
      : []),
    ["Profile", run.profile ? `${run.profile} r${run.revision}` : "none"],
    ["Where", run.kind === "migration" ? `${TESTBEDS[run.testbed]}, on ${run.host}` : run.host],
    run.vm
      ? [
          "Running VM",
          <Fragment key="vm">
            <Link to={`/vms/${run.vm.uuid}`}>{run.vm.name}</Link> on {run.vm.host}, {loaded(run.vm)}
          </Fragment>,
        ]
      : ["QEMU", run.qemu || "default"],
    ...(run.imported_from ? ([["Imported from", run.imported_from]] as Fact[]) : []),
    ["Created", <Moment key="created" at={run.created_at} />],
    ["Started", <Moment key="started" at={run.started_at} />],
    ["Ended", <Moment key="ended" at={run.ended_at} />],
  ];
}

function loaded(vm: Schemas["RunVmView"]): string {
  if (vm.device) return `${vm.device} in its guest`;
  return vm.node ? `its node ${vm.node}` : "a temporary null-co node";
}

function totals(found: Schemas["TotalsView"] | null): Fact[] {
  if (found === null) return [];
  return [
    ["Total time", duration(found.total_time_ms)],
    ["Downtime (QEMU)", duration(found.downtime_ms)],
    ["Transferred", bytes(found.transferred_bytes)],
    ["Iterations", count(found.iterations)],
    ...(found.missed_zero_copy
      ? ([["Zero-copy sends that were copied", count(found.missed_zero_copy)]] as Fact[])
      : []),
  ];
}

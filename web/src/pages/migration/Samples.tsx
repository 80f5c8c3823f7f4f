import { Button, Card, CardBody, CardHeader, CardTitle } from "@patternfly/react-core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import type { Schemas } from "../../api/client";
import { diskSamples, rounds, samples as samplesOf } from "../../api/queries";
import { Chart, prepareCharts } from "../../components/charts/Chart";
import { useToasts } from "../../components/dialogs/toasts";
import { Async, Empty } from "../../components/layout/Async";
import { bytes, count, counted } from "../../components/text/format";
import { rates, remaining, spanOf } from "./series";

/** The whole series, drawn with what was done meanwhile, and to download. */
export function Samples({ record }: { record: Schemas["MigrationView"] }) {
  const { id, step_records: steps, ended } = record;
  const found = useQuery({ ...samplesOf(id), refetchInterval: ended ? false : 1000 });
  const queries = useQueryClient();
  const toasts = useToasts();
  const samples = found.data;
  useEffect(prepareCharts, []);
  const { refetch } = found;
  useEffect(() => {
    // What came between the last look and the end. An event may have asked before it was stored.
    if (ended) void refetch({ cancelRefetch: true });
  }, [ended, refetch]);
  // What Reaper fetches, where it runs: all charts of the page share their time.
  const reaped = useQuery({ ...rounds(id), enabled: false }).data;
  const span = useMemo(() => spanOf(samples ?? [], reaped, steps), [samples, reaped, steps]);
  const rateChart = useMemo(() => rates(samples ?? [], steps, span), [samples, steps, span]);
  const remainingChart = useMemo(
    () => remaining(samples ?? [], bytes, steps, span),
    [samples, steps, span],
  );
  const everything = async () => {
    try {
      const reaped = record.reaper ? await queries.fetchQuery(rounds(id)) : [];
      const disks = record.disks.length > 0 ? await queries.fetchQuery(diskSamples(id)) : [];
      const whole = { migration: record, samples, rounds: reaped, disk_samples: disks };
      save(`migration-${id}-record.json`, whole);
    } catch (error) {
      toasts.failed("Loading the whole record failed", error);
    }
  };
  const empty = !samples?.length;
  return (
    <Card>
      <CardHeader
        hasWrap
        actions={{
          actions: (
            <>
              <Button variant="link" isDisabled={empty} onClick={() => void everything()}>
                Download the full record
              </Button>
              <Button
                variant="secondary"
                isDisabled={empty}
                onClick={() => save(`migration-${id}.json`, samples)}
              >
                Download samples
              </Button>
            </>
          ),
        }}
      >
        <CardTitle component="h2">Samples</CardTitle>
      </CardHeader>
      <CardBody>
        <Async query={found}>
          {(data) =>
            record.samples_kept === "dropped" ? (
              <Empty title="Samples deleted">
                They were older than the retention time. The record and its totals are kept.
              </Empty>
            ) : data.length === 0 ? (
              <Empty title="No samples">QEMU has not reported any data yet.</Empty>
            ) : (
              <>
                <p>
                  {counted(data.length, "sample")}; thin lines mark where iterations began
                  {steps.length > 0 && `, dashed lines mark ${stepsOf(record.intent)}`}.
                  {record.samples_kept === "thinned" && ` ${thinned(record.samples_thinned_s)}`}
                </p>
                <Chart option={rateChart} label="Throughput and dirty rate over time" group={id} />
                <Chart
                  option={remainingChart}
                  label="Remaining memory and throttle over time"
                  height={260}
                  group={id}
                />
              </>
            )
          }
        </Async>
      </CardBody>
    </Card>
  );
}

function stepsOf(intent: Schemas["MigrationView"]["intent"]): string {
  if (!intent) return "convergence steps";
  return intent.shadow ? "what steering would have done" : "what steering did";
}

function thinned(seconds: number | null): string {
  return `Old samples were thinned: for each ${count(seconds ?? 0)} s the last sample, the minimum and maximum of each value, and the start of iterations and phases are kept.`;
}

function save(name: string, what: unknown): void {
  const file = new Blob([JSON.stringify(what)], { type: "application/json" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

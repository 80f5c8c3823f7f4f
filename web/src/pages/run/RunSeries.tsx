import { Stack } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { runPasses, runSamples } from "../../api/bench";
import type { Schemas } from "../../api/client";
import { Chart } from "../../components/charts/Chart";
import { Async, Empty } from "../../components/layout/Async";
import { bytes, counted, duration } from "../../components/text/format";
import { Section } from "../bench/Section";
import { rates, remaining } from "../migration/series";
import { writing } from "./charts";

/** The whole series of a run that has ended: the migration's, and what its guest did meanwhile. */
export function RunSeries({ run }: { run: Schemas["RunDetail"] }) {
  const found = useQuery({ ...runSamples(run.id), enabled: run.lengths.samples !== 0 });
  const rateChart = useMemo(() => rates(found.data ?? []), [found.data]);
  const remainingChart = useMemo(() => remaining(found.data ?? [], bytes), [found.data]);
  return (
    <Stack hasGutter>
      <Section title="Migration over time">
        {run.lengths.samples ? (
          <Async query={found}>
            {(data) => (
              <>
                <p>{counted(data.length, "sample")}; thin lines mark where iterations began.</p>
                <Chart option={rateChart} label="Throughput and dirty rate over time" />
                <Chart
                  option={remainingChart}
                  label="Remaining memory and throttle over time"
                  height={260}
                />
              </>
            )}
          </Async>
        ) : (
          <Empty title="No samples">QEMU reported no data in this run.</Empty>
        )}
      </Section>
      {run.lengths.passes ? <Guest run={run} /> : null}
    </Stack>
  );
}

function Guest({ run: { id, record } }: { run: Schemas["RunDetail"] }) {
  const found = useQuery(runPasses(id));
  const begins = record?.migration_ms ?? null;
  const ends = record?.migration_ended_ms ?? null;
  const option = useMemo(
    () =>
      writing(found.data ?? [], [
        ...(begins === null ? [] : [{ at_ms: begins, name: "begins" }]),
        ...(ends === null ? [] : [{ at_ms: ends, name: "over" }]),
      ]),
    [found.data, begins, ends],
  );
  return (
    <Section title="Write speed of the guest">
      <Async query={found}>
        {(data) => (
          <>
            <p>
              {counted(data.length, "report")} of its workers
              {begins !== null && `; the migration started at ${duration(begins)}`}
              {ends !== null && ` and ended at ${duration(ends)}`}.
            </p>
            <Chart option={option} label="Write speed of the guest's workers over time" />
          </>
        )}
      </Async>
    </Section>
  );
}

import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { diskSamples } from "../../api/queries";
import { Chart, prepareCharts } from "../../components/charts/Chart";
import { copies, toCopy } from "./diskSeries";

/** How fast each disk was copied over time, and what remained. */
export function DiskCharts({ id, ended }: { id: string; ended: boolean }) {
  const found = useQuery({ ...diskSamples(id), refetchInterval: ended ? false : 2000 });
  const { data, refetch } = found;
  useEffect(prepareCharts, []);
  useEffect(() => {
    if (ended) void refetch({ cancelRefetch: true }); // what came between the last look and the end
  }, [ended, refetch]);
  const rateChart = useMemo(() => copies(data ?? []), [data]);
  const leftChart = useMemo(() => toCopy(data ?? []), [data]);
  // None of before there were any, or deleted with the other samples; one moment is no line.
  if (new Set(data?.map((each) => each.at_ms)).size < 2) return null;
  return (
    <>
      <Chart option={rateChart} label="Copy of disks and writes over time" group={`${id}-disks`} />
      <Chart
        option={leftChart}
        label="Remaining of disks over time"
        height={220}
        group={`${id}-disks`}
      />
    </>
  );
}

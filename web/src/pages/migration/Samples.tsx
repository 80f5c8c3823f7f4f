import { Button, Card, CardBody, CardHeader, CardTitle } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { samples as samplesOf } from "../../api/queries";
import { Async, Empty } from "../../components/Async";
import { Chart } from "../../components/Chart";
import { bytes, count } from "../../components/format";
import { rates, remaining } from "./series";

/** The whole series, drawn and to download. */
export function Samples({ id, running }: { id: string; running: boolean }) {
  const found = useQuery({ ...samplesOf(id), refetchInterval: running ? 1000 : false });
  const samples = found.data;
  const rateChart = useMemo(() => rates(samples ?? []), [samples]);
  const remainingChart = useMemo(() => remaining(samples ?? [], bytes), [samples]);
  const download = () => {
    const file = new Blob([JSON.stringify(samples)], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = `migration-${id}.json`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <Card>
      <CardHeader
        actions={{
          actions: (
            <Button variant="secondary" isDisabled={!samples?.length} onClick={download}>
              Download samples
            </Button>
          ),
        }}
      >
        <CardTitle component="h2">Samples</CardTitle>
      </CardHeader>
      <CardBody>
        <Async query={found}>
          {(data) =>
            data.length === 0 ? (
              <Empty title="No samples">QEMU has not said anything of its memory yet.</Empty>
            ) : (
              <>
                <p>{count(data.length)} samples; thin lines mark where iterations began.</p>
                <Chart option={rateChart} label="Throughput and dirty rate over time" />
                <Chart
                  option={remainingChart}
                  label="Remaining memory and throttle over time"
                  height={260}
                />
              </>
            )
          }
        </Async>
      </CardBody>
    </Card>
  );
}

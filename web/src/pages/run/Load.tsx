import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { runProcesses } from "../../api/bench";
import type { Schemas } from "../../api/client";
import { Chart } from "../../components/charts/Chart";
import { Async } from "../../components/layout/Async";
import { FactList } from "../../components/layout/Facts";
import { count } from "../../components/text/format";
import { Section } from "../bench/Section";
import { processes } from "./charts";

/** How the project's guest loaded its disks. */
function ofGuest(io: Schemas["GuestIo"]): [string, string][] {
  return [
    ["Loaded by", `a guest with ${count(io.disks)} virtio-blk disk${io.disks === 1 ? "" : "s"}`],
    ["Queues used", `${count(io.queues)}, ${count(io.depth)} requests at once`],
    ["Interrupts", count(io.interrupts)],
    ["Errors", count(io.errors)],
  ];
}

/** What a load of blocks did to its QEMU: maps and memory before, during and after it. */
export function Load({ run, block }: { run: Schemas["RunDetail"]; block: Schemas["BlockRecord"] }) {
  const found = useQuery({ ...runProcesses(run.id), enabled: run.lengths.processes !== 0 });
  const { load_ms: begins = null, load_ended_ms: ends = null, pool_forecast } = block;
  const option = useMemo(
    () =>
      processes(found.data ?? [], [
        ...(begins === null ? [] : [{ at_ms: begins, name: "load" }]),
        ...(ends === null ? [] : [{ at_ms: ends, name: "over" }]),
      ]),
    [found.data, begins, ends],
  );
  return (
    <Section title="Host resources of QEMU">
      <FactList
        spread
        facts={[
          ...(pool_forecast
            ? ([
                ["Predicted maximum of maps", count(pool_forecast.max_maps)],
                [
                  "vm.max_map_count",
                  pool_forecast.limit === null ? "unknown" : count(pool_forecast.limit),
                ],
              ] as [string, string][])
            : []),
          ...(block.guest_io ? ofGuest(block.guest_io) : []),
          ...(block.qemu_ended ? ([["QEMU ended", block.qemu_ended]] as [string, string][]) : []),
        ]}
      />
      {run.lengths.processes ? (
        <Async query={found}>
          {(data) => (
            <>
              <p>{count(data.length)} looks at its process.</p>
              <Chart option={option} label="Memory maps and memory of QEMU over time" />
            </>
          )}
        </Async>
      ) : null}
    </Section>
  );
}

import { Card, CardBody, CardTitle } from "@patternfly/react-core";
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { rounds, samples } from "../../api/queries";
import { Chart } from "../../components/charts/Chart";
import { Alert } from "../../components/layout/Alert";
import { Async } from "../../components/layout/Async";
import { type Fact, FactList } from "../../components/layout/Facts";
import { count, duration, percent } from "../../components/text/format";
import { reaping, type Step, spanOf } from "./series";

/** What the dirty-ring reaper did beside this migration. */
export function Reaper({
  id,
  reaper,
  steps,
  running,
}: {
  id: string;
  reaper: Schemas["ReaperView"];
  steps: readonly Step[];
  running: boolean;
}) {
  const found = useQuery({ ...rounds(id), refetchInterval: running ? 1000 : false });
  const sampled = useQuery({ ...samples(id), enabled: false }).data; // what Samples fetches
  return (
    <ReaperCard reaper={reaper} rounds={found} beside={{ id, samples: sampled ?? [], steps }} />
  );
}

type Rounds = Pick<
  UseQueryResult<Schemas["RoundView"][]>,
  "data" | "error" | "isPending" | "refetch"
>;

/** The same, with its rounds from wherever they are kept. */
export function ReaperCard({
  reaper,
  rounds: found,
  beside,
}: {
  reaper: Schemas["ReaperView"];
  rounds: Rounds;
  /** The migration whose charts share their time with this one. */
  beside?: { id: string; samples: readonly { at_ms: number }[]; steps: readonly Step[] };
}) {
  const sampled = beside?.samples;
  const steps = beside?.steps;
  const option = useMemo(() => {
    const all = found.data ?? [];
    return reaping(all, sampled && spanOf(sampled, all, steps));
  }, [found.data, sampled, steps]);
  const facts: Fact[] = [
    ["Policy", reaper.policy],
    ["Ring", `${count(reaper.ring_entries)} entries`],
    ["Rounds", `${count(reaper.round_count)}, ${count(reaper.rounds_before)} before the migration`],
    ["Rounds with a full ring", count(reaper.filled_rounds)],
    ...(reaper.ring_full_exits === null
      ? []
      : [["Ring-full exits", count(reaper.ring_full_exits)] as Fact]),
    ["Highest ring fill", percent(reaper.fullest * 100)],
    [
      "Interval",
      `${duration(reaper.mean_interval_ms)} mean, ${duration(reaper.shortest_interval_ms)} to ${duration(reaper.longest_interval_ms)}`,
    ],
    ["Cost per round", duration(reaper.mean_cost_ms)],
  ];
  return (
    <Card>
      <CardTitle component="h2">Dirty-ring reaper</CardTitle>
      <CardBody>
        {reaper.reason && <Alert isInline variant="warning" title={reaper.reason} />}
        <FactList facts={facts} spread />
        <Async query={found}>
          {(data) =>
            data.length > 0 && (
              <Chart
                option={option}
                label="Interval of the reaper and highest ring fill"
                height={240}
                {...(beside ? { group: beside.id } : {})}
              />
            )
          }
        </Async>
      </CardBody>
    </Card>
  );
}

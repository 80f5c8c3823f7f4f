import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { metrics } from "../../api/bench";
import type { Schemas } from "../../api/client";
import { measure } from "../../components/text/measure";

/** A metric as people read it, and its values in its unit. */
export interface MetricWords {
  title: string;
  said: (value: number) => string;
}

/** The words for the metrics of a kind of runs; by their names until the table is there. */
export function useMetricWords(kind: Schemas["ScenarioKind"]): (name: string) => MetricWords {
  const table = useQuery(metrics).data;
  return useMemo(() => {
    const known = new Map(
      table?.filter((each) => each.kind === kind).map((each) => [each.name, each] as const),
    );
    return (name) => {
      const found = known.get(name);
      return {
        title: found?.title ?? name,
        said: (value) => measure(value, found?.unit ?? ""),
      };
    };
  }, [table, kind]);
}

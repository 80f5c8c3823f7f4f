import { FormSelect, FormSelectOption, Grid, GridItem } from "@patternfly/react-core";
import { useMemo } from "react";
import { useSearchParams } from "react-router";
import { Chart } from "../../components/charts/Chart";
import { figure } from "../../components/text/measure";
import { Section } from "../bench/Section";
import { changed } from "../bench/search";
import { type Comparison, metricOf, type Pair, primaryOf, type Report, unitOf } from "./pairs";
import { intervals, ratiosOf, strip } from "./plots";

const ROW_PX = 34;

/** Each run's value of one metric, and the effects of all of them. */
export function Plots({
  report,
  pair,
  shown: comparisons,
}: {
  report: Report;
  pair: Pair;
  shown: readonly Comparison[];
}) {
  const [search, setSearch] = useSearchParams();
  const primary = primaryOf(pair)?.criterion.metric ?? report.primary_metric;
  const wanted = search.get("plot");
  const shown =
    pair.comparisons.find((each) => each.criterion.metric === wanted)?.criterion.metric ?? primary;
  const stripPlot = useMemo(() => strip(report, pair, shown), [report, pair, shown]);
  const intervalPlot = useMemo(() => intervals(report, comparisons), [report, comparisons]);
  const ratios = ratiosOf(comparisons);
  const others = comparisons.filter((each) => !ratios.includes(each));
  const comparison = pair.comparisons.find((each) => each.criterion.metric === shown);
  const unit = unitOf(report, shown);
  const title = (name: string) => metricOf(report, name)?.title ?? name;
  return (
    <Grid hasGutter>
      <GridItem xl={6}>
        <Section title="All runs">
          <FormSelect
            aria-label="Metric of the strip plot"
            value={shown}
            onChange={(_event, plot) =>
              setSearch((old) => changed(old, { plot }), { replace: true })
            }
          >
            {pair.comparisons.map(({ criterion: { metric } }) => (
              <FormSelectOption key={metric} value={metric} label={title(metric)} />
            ))}
          </FormSelect>
          <Chart
            key={`${pair.id} ${shown}`}
            option={stripPlot}
            height={360}
            label={
              `${title(shown)} of every run. Median of ${pair.a}: ` +
              `${figure(comparison?.a.median, unit)}, of ${pair.b}: ${figure(comparison?.b.median, unit)}`
            }
          />
          <p>
            Thick lines are medians, thin lines join the runs of a block, triangles are limits that
            the true value is above.
          </p>
        </Section>
      </GridItem>
      <GridItem xl={6}>
        <Section title="Effects with their intervals">
          {ratios.length > 0 ? (
            <>
              <Chart
                key={`${pair.id} ${ratios.length}`}
                option={intervalPlot}
                height={Math.max(200, ratios.length * ROW_PX + 60)}
                label={`Difference of ${pair.b} from ${pair.a} in each metric, with its interval; the table has the figures`}
              />
              <p>
                {pair.b} compared to {pair.a}: 0 % is no difference, dashed lines are the margin.
                Green is better, red is worse, grey is neither.
              </p>
            </>
          ) : (
            <p>None of these metrics has a ratio.</p>
          )}
          {others.length > 0 && (
            <p>
              Without a ratio, in the table only:{" "}
              {others.map((each) => title(each.criterion.metric)).join(", ")}.
            </p>
          )}
        </Section>
      </GridItem>
    </Grid>
  );
}

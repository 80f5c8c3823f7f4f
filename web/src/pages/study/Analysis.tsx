import {
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Progress,
  ProgressMeasureLocation,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { Chart, type ChartOption } from "../../components/charts/Chart";
import { WIDE_TERMS } from "../../components/layout/Facts";
import { Section } from "../bench/Section";
import { type MetricWords, useMetricWords } from "./useMetricWords";

type Found = Schemas["StudyAnalysisView"];

const TRIAL = "#8a8d90";
const FRONT = "#4394e5";

/** What the trials say so far: the importance of the tunables, and how the goals conflict. */
export function Analysis({ found, kind }: { found: Found; kind: Schemas["ScenarioKind"] }) {
  return (
    <Stack hasGutter>
      <StackItem>
        <Importance found={found} />
      </StackItem>
      {found.goals.length > 1 && (
        <StackItem>
          <Front found={found} kind={kind} />
        </StackItem>
      )}
    </Stack>
  );
}

function Importance({ found }: { found: Found }) {
  return (
    <Section title="Importance of tunables">
      {found.importance.length === 0 ? (
        "Not known before more trials have run."
      ) : (
        <DescriptionList isCompact orientation={{ sm: "horizontal" }} style={WIDE_TERMS}>
          {found.importance.map(({ tunable, share }) => (
            <DescriptionListGroup key={tunable}>
              <DescriptionListTerm>{tunable}</DescriptionListTerm>
              <DescriptionListDescription>
                <Progress
                  aria-label={`Importance of ${tunable}`}
                  value={Math.round(share * 100)}
                  measureLocation={ProgressMeasureLocation.outside}
                />
              </DescriptionListDescription>
            </DescriptionListGroup>
          ))}
        </DescriptionList>
      )}
    </Section>
  );
}

function Front({ found, kind }: { found: Found; kind: Schemas["ScenarioKind"] }) {
  const words = useMetricWords(kind);
  const option = useMemo(() => plot(found, words), [found, words]);
  const best = found.points.filter((point) => point.front).map((point) => point.trial);
  const text = best.length
    ? `The best that keep the constraints: ${best.join(", ")}. No other is better in every goal`
    : "No trial keeps the constraints";
  const goals = found.goals.map((goal) => words(goal).title).join(" and ");
  return (
    <Section title="Trials by goal">
      <p>{text}.</p>
      <Chart option={option} label={`Trials by ${goals}. ${text}.`} />
    </Section>
  );
}

/** The first two goals; the front's trials are drawn in colour, and connected. */
export function plot({ goals, points }: Found, words: (name: string) => MetricWords): ChartOption {
  const [across = "", up = ""] = goals;
  const x = words(across);
  const y = words(up);
  const at = (point: Found["points"][number]) => ({
    name: `${point.trial}`,
    value: [point.values[across], point.values[up]],
  });
  const front = points.filter((point) => point.front).map(at);
  return {
    animation: false, // each trial that ends would have the axes move
    grid: { left: 80, right: 24, top: 32, bottom: 44 },
    tooltip: {
      trigger: "item",
      formatter: ({ name, value }: { name: string; value: [number, number] }) =>
        `trial ${name}: ${x.title} ${x.said(value[0])}, ${y.title} ${y.said(value[1])}`,
    },
    xAxis: {
      type: "value",
      scale: true,
      name: x.title,
      nameLocation: "middle",
      nameGap: 28,
      axisLabel: { hideOverlap: true, formatter: x.said },
    },
    yAxis: {
      type: "value",
      scale: true,
      name: y.title,
      nameTextStyle: { align: "left" },
      axisLabel: { formatter: y.said },
    },
    series: [
      {
        type: "scatter",
        symbolSize: 8,
        itemStyle: { color: TRIAL },
        data: points.filter((point) => !point.front).map(at),
      },
      {
        type: "line",
        symbolSize: 9,
        step: "end",
        itemStyle: { color: FRONT },
        data: front.sort((a, b) => Number(a.value[0]) - Number(b.value[0])),
      },
    ],
  };
}

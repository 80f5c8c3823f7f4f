/** Comparisons drawn: each run's value, and each metric's effect with its interval. */

import type { ChartOption } from "../../components/charts/Chart";
import { bounded } from "../../components/text/format";
import { measure, ratio } from "../../components/text/measure";
import { type Comparison, metricOf, type Pair, type Report, unitOf } from "./pairs";

const ARM_COLOURS = ["#4394e5", "#ec7a08"] as const; // both visible on white and on black
const VERDICT_COLOURS: Record<string, string> = { better: "#3d9a50", worse: "#d9534f" };
const NEUTRAL = "#8a8d90";
const SPREAD = 0.18;

/** A point of the strip plot. */
export interface Point {
  x: number;
  value: number;
  block: number | null;
  limit: boolean;
  run: string;
}

/** The values of one arm of a pair for *metric*, spread so that equal ones do not hide each other. */
export function pointsOf(report: Report, pair: Pair, metric: string, side: "a" | "b"): Point[] {
  const arm = pair[side];
  const runs = report.runs.filter(
    (run) => run.cell === pair.cell && run.arm === arm && run.values[metric] !== undefined,
  );
  return runs.map((run, index) => ({
    x: (side === "a" ? 0 : 1) + SPREAD * (((index * 7) % 11) / 5 - 1),
    value: run.values[metric] ?? 0,
    block: run.block,
    limit: run.censored.includes(metric),
    run: run.run,
  }));
}

/** Every run's value, A left and B right; lines join the runs of a block. */
export function strip(report: Report, pair: Pair, metric: string): ChartOption {
  const unit = unitOf(report, metric);
  const show = (value: number) => measure(value, unit);
  const [ofA, ofB] = [pointsOf(report, pair, metric, "a"), pointsOf(report, pair, metric, "b")];
  const found = pair.comparisons.find((each) => each.criterion.metric === metric);
  const joined = ofA.flatMap((a) => {
    const b = a.block === null ? undefined : ofB.find((each) => each.block === a.block);
    return b
      ? [
          [a.x, a.value],
          [b.x, b.value],
          [Number.NaN, Number.NaN],
        ]
      : [];
  });
  const series = ([ofA, ofB] as const).map((points, index) => {
    const name = index === 0 ? pair.a : pair.b;
    const median = found?.[index === 0 ? "a" : "b"].median;
    return {
      name,
      type: "scatter",
      symbolSize: 9,
      itemStyle: { color: ARM_COLOURS[index], opacity: 0.75 },
      data: points.map((each) => ({
        value: [each.x, each.value],
        name: `${each.limit ? "> " : ""}${show(each.value)}${
          each.block === null ? "" : `, block ${each.block}`
        }`,
        ...(each.limit ? { symbol: "triangle" } : {}),
      })),
      ...(median
        ? {
            markLine: {
              silent: true,
              symbol: "none",
              lineStyle: { color: ARM_COLOURS[index], type: "solid", width: 2 },
              label: { show: false },
              data: [
                [{ coord: [index - 0.3, median.value] }, { coord: [index + 0.3, median.value] }],
              ],
            },
          }
        : {}),
    };
  });
  return {
    animation: false,
    aria: { enabled: true },
    grid: { left: 84, right: 24, top: 24, bottom: 40 },
    xAxis: {
      type: "value",
      min: -0.5,
      max: 1.5,
      interval: 0.5,
      splitLine: { show: false },
      axisTick: { show: false },
      axisLine: { onZero: false },
      axisLabel: {
        formatter: (value: number) =>
          value === 0 ? short(pair.a) : value === 1 ? short(pair.b) : "",
      },
    },
    yAxis: {
      type: "value",
      scale: true,
      axisLabel: { formatter: show },
      axisLine: { onZero: false },
    },
    tooltip: {
      trigger: "item",
      formatter: ({ seriesName, name }: { seriesName: string; name: string }) =>
        name ? `${seriesName}: ${name}` : "",
    },
    series: [
      {
        type: "line",
        silent: true,
        showSymbol: false,
        connectNulls: false,
        data: joined,
        lineStyle: { color: NEUTRAL, width: 1, opacity: 0.4 },
        tooltip: { show: false },
      },
      ...series,
    ],
  };
}

/** The comparisons that are ratios: only those can share an axis. */
export function ratiosOf(comparisons: readonly Comparison[]): Comparison[] {
  return comparisons.filter((each) => each.effect?.scale === "ratio");
}

interface Drawing {
  value: (dimension: number) => number;
  coord: (point: [number, number]) => [number, number];
}

/** Each metric's ratio B/A with its interval; an end that is open runs to the edge, and without
 * an interval there is a point alone. */
export function intervals(report: Report, comparisons: readonly Comparison[]): ChartOption {
  const rows = [...ratiosOf(comparisons)].reverse(); // the axis grows upwards
  const ends = rows.flatMap(({ effect }) =>
    effect ? [effect.estimate, effect.low, effect.high, effect.margin_low, effect.margin_high] : [],
  );
  const known = ends.filter((each): each is number => typeof each === "number" && each > 0);
  const least = Math.min(0.9, ...known) * 0.95;
  const most = Math.max(1.1, ...known) * 1.05;
  const primary = rows.find((each) => each.criterion.primary)?.effect ?? rows[0]?.effect;
  const draw = (_parameters: unknown, api: Drawing) => {
    const row = rows[api.value(0)];
    const effect = row?.effect;
    if (!row || !effect) return null;
    const at = (value: number) => api.coord([Math.log(Math.max(value, least)), api.value(0)]);
    const [low, y] = at(effect.low ?? least);
    const [high] = at(effect.high ?? most);
    const [middle] = at(effect.estimate);
    const colour = VERDICT_COLOURS[row.verdict ?? ""] ?? NEUTRAL;
    const style = { stroke: colour, lineWidth: 2 };
    const tick = (x: number) => ({
      type: "line",
      shape: { x1: x, y1: y - 5, x2: x, y2: y + 5 },
      style,
    });
    const dot = { type: "circle", shape: { cx: middle, cy: y, r: 5 }, style: { fill: colour } };
    if (effect.low === null && effect.high === null) return { type: "group", children: [dot] };
    return {
      type: "group",
      children: [
        { type: "line", shape: { x1: low, y1: y, x2: high, y2: y }, style },
        ...(effect.low === null ? [] : [tick(low)]),
        ...(effect.high === null ? [] : [tick(high)]),
        dot,
      ],
    };
  };
  const line = (x: number, type: "solid" | "dashed") => ({
    xAxis: Math.log(x),
    lineStyle: { type, color: NEUTRAL },
  });
  return {
    animation: false,
    aria: { enabled: true },
    grid: { left: 8, right: 24, top: 16, bottom: 32, containLabel: true },
    xAxis: {
      type: "value", // of logarithms: twice as much is as far from 1 as half as much
      min: Math.log(least),
      max: Math.log(most),
      axisLabel: {
        formatter: (value: number) => ratio(Math.exp(value)),
        hideOverlap: true,
        showMinLabel: false,
        showMaxLabel: false,
      },
      axisLine: { onZero: false },
    },
    yAxis: {
      type: "category",
      data: rows.map((each) => metricOf(report, each.criterion.metric)?.title ?? ""),
      axisLabel: { width: 130, overflow: "break", lineHeight: 14 },
    },
    tooltip: {
      trigger: "item",
      formatter: ({ dataIndex }: { dataIndex: number }) => told(report, rows[dataIndex]),
    },
    series: [
      {
        type: "custom",
        renderItem: draw,
        encode: { x: 1, y: 0 },
        data: rows.map((each, index) => [index, Math.log(each.effect?.estimate ?? 1)]),
        markLine: {
          silent: true,
          symbol: "none",
          label: { show: false },
          data: [
            line(1, "solid"),
            ...(primary
              ? [line(primary.margin_low, "dashed"), line(primary.margin_high, "dashed")]
              : []),
          ],
        },
      },
    ],
  };
}

const LONGEST = 24;

function short(name: string): string {
  return name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
}

function told(report: Report, row: Comparison | undefined): string {
  if (row === undefined) return "";
  const { metric } = row.criterion;
  return `${metricOf(report, metric)?.title ?? metric}: ${bounded(row.text.effect)} (${row.text.interval})`;
}

/** A setup's history drawn: each run, the changes, and the early sign. */
import type { SetupHistory } from "../../api/trends";
import type { ChartOption } from "../../components/charts/Chart";
import { measure } from "../../components/text/measure";
import type { Unit } from "../compare/pairs";

const RUN = "#4394e5";
const AT_LIMIT = "#ec7a08";
const CHANGE = "#d9534f";
const NEUTRAL = "#8a8d90";

export function plot(entry: SetupHistory, unit: Unit): ChartOption {
  const show = (value: number) => measure(value, unit);
  const sign = entry.sign;
  return {
    grid: { left: 80, right: 24, top: 24, bottom: 40 },
    tooltip: { trigger: "item" },
    xAxis: { type: "value", name: "run", nameLocation: "middle", nameGap: 26, min: 1 },
    yAxis: { type: "value", scale: true, axisLabel: { formatter: show } },
    series: [
      {
        type: "scatter",
        symbolSize: 7,
        data: entry.points.map((point, index) => ({
          value: [index + 1, point.value],
          itemStyle: { color: point.at_limit ? AT_LIMIT : RUN },
        })),
        tooltip: {
          formatter: ({ value }: { value: [number, number] }) =>
            `run ${value[0]}: ${show(value[1])}`,
        },
        markLine: {
          symbol: "none",
          label: { show: false },
          data: [
            ...(entry.changes ?? []).map((change) => ({
              xAxis: change.at + 0.5,
              lineStyle: { color: change.worse ? CHANGE : NEUTRAL, type: "solid" },
            })),
            ...(sign
              ? [{ xAxis: sign.at + 0.5, lineStyle: { color: AT_LIMIT, type: "dashed" } }]
              : []),
          ],
        },
      },
    ],
  };
}

/** What a run's guest did, as lines over the run's timeline. */
import type { Schemas } from "../../api/client";
import type { ChartOption } from "../../components/charts/Chart";
import { bytes, count, duration } from "../../components/text/format";
import { measure } from "../../components/text/measure";

type Pass = Schemas["GuestPassView"];

const MIB = 1024 * 1024;

/** How fast each worker of the guest wrote, pass by pass, with the migration's beginning and end. */
export function writing(
  passes: readonly Pass[],
  marks: readonly { at_ms: number; name: string }[],
): ChartOption {
  const workers = [...new Set(passes.map((each) => each.worker))].sort((a, b) => a - b);
  const speed = (value: number) => measure(value, "mib_per_s");
  return {
    animation: false,
    aria: { enabled: true },
    grid: { left: 80, right: 24, top: 40, bottom: 64 },
    legend: { top: 0, type: "scroll" },
    dataZoom: [{ type: "slider", height: 18, bottom: 8, labelFormatter: duration }],
    xAxis: { type: "value", min: 0, axisLabel: { formatter: duration, hideOverlap: true } },
    yAxis: { type: "value", min: 0, axisLabel: { formatter: speed } },
    tooltip: { trigger: "axis", valueFormatter: (value: unknown) => speed(Number(value)) },
    series: workers.map((worker, index) => ({
      name: `Worker ${worker}`,
      type: "line",
      showSymbol: false,
      sampling: "lttb",
      data: passes
        .filter((each) => each.worker === worker && each.duration_us > 0)
        .map((each) => [each.at_ms, each.written_bytes / MIB / (each.duration_us / 1e6)]),
      ...(index === 0
        ? {
            markLine: {
              silent: true,
              symbol: "none",
              label: { formatter: "{b}", position: "insideEndTop" },
              data: marks.map(({ at_ms, name }) => ({ xAxis: at_ms, name })),
            },
          }
        : {}),
    })),
  };
}

/** Memory maps and memory of a QEMU that serves blocks, with the load's beginning and end. */
export function processes(
  looks: readonly Schemas["ProcessSampleView"][],
  marks: readonly { at_ms: number; name: string }[],
): ChartOption {
  const line = (
    name: string,
    axis: number,
    of: (look: Schemas["ProcessSampleView"]) => number,
  ) => ({
    name,
    type: "line" as const,
    yAxisIndex: axis,
    showSymbol: false,
    data: looks.map((each) => [each.at_ms, of(each)]),
  });
  return {
    animation: false,
    aria: { enabled: true },
    grid: { left: 80, right: 80, top: 40, bottom: 64 },
    legend: { top: 0, type: "scroll" },
    dataZoom: [{ type: "slider", height: 18, bottom: 8, labelFormatter: duration }],
    xAxis: { type: "value", min: 0, axisLabel: { formatter: duration, hideOverlap: true } },
    yAxis: [
      { type: "value", min: 0, axisLabel: { formatter: count } },
      { type: "value", min: 0, axisLabel: { formatter: bytes } },
    ],
    tooltip: { trigger: "axis" },
    series: [
      {
        ...line("Memory maps", 0, (each) => each.maps),
        markLine: {
          silent: true,
          symbol: "none",
          label: { formatter: "{b}", position: "insideEndTop" },
          data: marks.map(({ at_ms, name }) => ({ xAxis: at_ms, name })),
        },
      },
      line("Coroutine stacks", 0, (each) => each.stacks),
      line("Memory (RSS)", 1, (each) => each.rss_bytes),
    ],
  };
}

/** A chart. ECharts is loaded when the first one is shown. */
import type { EChartsCoreOption, EChartsType } from "echarts/core";
import { useEffect, useRef, useSyncExternalStore } from "react";

export type ChartOption = EChartsCoreOption;

/** What browsers call, in their own tools too, the time from a chart's data to its picture. */
const DRAWN = "vmtune chart";

/** Fetches what draws charts before the first one has its data. */
export function prepareCharts(): void {
  void import("./echarts").catch(() => undefined); // whoever draws tells that it cannot be had
}

function draw(chart: EChartsType, option: ChartOption, label: string): void {
  const start = performance.now();
  const finished = () => {
    chart.off("finished", finished);
    performance.measure(DRAWN, { start, end: performance.now() });
  };
  chart.on("finished", finished);
  // ECharts calls the picture after its kinds of series where it is not told what it shows.
  const aria = { enabled: true, label: { description: label } };
  chart.setOption({ baseOption: { ...option, aria }, media: margins(option) });
}

/** On a narrow screen no more room beside the picture than its axes need, and a second line above
 * it for the names of more than two series. */
function margins({ grid, legend, series }: ChartOption) {
  const { left, right, top, containLabel } = (grid ?? {}) as Record<string, unknown>;
  if (typeof left !== "number" || typeof right !== "number" || containLabel) return [];
  const named = legend && typeof top === "number" ? top : null;
  const two = Array.isArray(series) && series.length > 2;
  const below = (more: number) => (named === null ? {} : { top: named + more });
  return [
    {
      query: { maxWidth: NARROW_PX },
      option: {
        grid: {
          left: Math.min(left, 62),
          right: Math.min(right, 48),
          ...below(two ? LEGEND_LINE_PX : 0),
        },
      },
    },
    { option: { grid: { left, right, ...below(0) } } },
  ];
}

const NARROW_PX = 480;
const LEGEND_LINE_PX = 22;
/** Those of ECharts but for the grey that can hardly be seen on a dark page. */
const ON_DARK = ["#5070dd", "#b6d634", "#0ca8df", "#ff994d", "#fb628b", "#3fbe95", "#ffd10a"];
const DARK = "pf-v6-theme-dark";

function watchTheme(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributeFilter: ["class"] });
  return () => observer.disconnect();
}

/** Whether the page is dark right now. */
export function useDark(): boolean {
  return useSyncExternalStore(watchTheme, () => document.documentElement.classList.contains(DARK));
}

/**
 * @param label what it shows, in a sentence: all that a screen reader gets of it. The figures
 *   themselves belong into a table beside it.
 * @param group charts of one group are zoomed, and pointed at, together.
 */
export function Chart({
  option,
  label,
  height = 320,
  group,
}: {
  option: ChartOption;
  label: string;
  height?: number;
  group?: string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<EChartsType | null>(null);
  const latest = useRef(option);
  const name = useRef(label);
  const dark = useDark();
  latest.current = option;
  name.current = label;

  useEffect(() => {
    let gone = false;
    let resized: ResizeObserver | null = null;
    void import("./echarts").then(({ init, connect }) => {
      if (gone || place.current === null) return;
      chart.current = init(place.current, dark ? "dark" : null);
      if (group !== undefined) {
        chart.current.group = group;
        connect(group);
      }
      const looks = { backgroundColor: "transparent", ...(dark ? { color: ON_DARK } : {}) };
      draw(chart.current, { ...looks, ...latest.current }, name.current);
      resized = new ResizeObserver(() => chart.current?.resize());
      resized.observe(place.current);
    });
    return () => {
      gone = true;
      resized?.disconnect();
      chart.current?.dispose();
      chart.current = null;
    };
  }, [dark, group]);

  useEffect(() => {
    if (chart.current !== null) draw(chart.current, option, label);
  }, [option, label]);

  return <div ref={place} role="img" aria-label={label} style={{ height, width: "100%" }} />;
}

/** A chart. ECharts is loaded when the first one is shown. */
import type { EChartsCoreOption, EChartsType } from "echarts/core";
import { useEffect, useRef, useSyncExternalStore } from "react";

export type ChartOption = EChartsCoreOption;

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
 */
export function Chart({
  option,
  label,
  height = 320,
}: {
  option: ChartOption;
  label: string;
  height?: number;
}) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<EChartsType | null>(null);
  const latest = useRef(option);
  const dark = useDark();
  latest.current = option;

  useEffect(() => {
    let gone = false;
    let resized: ResizeObserver | null = null;
    void import("./echarts").then(({ init }) => {
      if (gone || place.current === null) return;
      chart.current = init(place.current, dark ? "dark" : null);
      chart.current.setOption({ backgroundColor: "transparent", ...latest.current });
      resized = new ResizeObserver(() => chart.current?.resize());
      resized.observe(place.current);
    });
    return () => {
      gone = true;
      resized?.disconnect();
      chart.current?.dispose();
      chart.current = null;
    };
  }, [dark]);

  useEffect(() => {
    chart.current?.setOption(option);
  }, [option]);

  return <div ref={place} role="img" aria-label={label} style={{ height, width: "100%" }} />;
}

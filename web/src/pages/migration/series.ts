/** A migration's samples as the lines of its charts. */
import type { Schemas } from "../../api/client";
import type { ChartOption } from "../../components/charts/Chart";
import { duration, rate } from "../../components/text/format";
import { type Point, thin } from "./thin";

type Sample = Schemas["SampleView"];

/** Where iterations began, for the thin lines in the charts. */
export function boundaries(samples: readonly Sample[]): { at_ms: number; iteration: number }[] {
  return samples
    .filter((each) => each.boundary)
    .map(({ at_ms, iteration }) => ({ at_ms, iteration }));
}

/** From when to when the charts of a page reach, in milliseconds since the migration's start. */
export interface Span {
  from: number;
  to: number;
}

/** All that happened: from the first sample, round of the reaper or step to the last. What came
 * before, while both hosts were prepared, would leave most of the chart of a short migration empty.
 * A step may be the last of them: what it changes can end the migration before QEMU is asked
 * again. */
export function spanOf(
  samples: readonly { at_ms: number }[],
  rounds: readonly { at_ms: number }[] = [],
  steps: readonly { at_ms: number }[] = [],
): Span {
  const all = [samples, rounds, steps];
  const first = all.flatMap((each) => each[0]?.at_ms ?? []);
  const last = all.flatMap((each) => each.at(-1)?.at_ms ?? []);
  const from = first.length === 0 ? 0 : Math.min(...first);
  return { from, to: Math.max(from + 1, ...last) };
}

export const time = (span: Span | undefined) =>
  ({
    type: "value",
    axisLabel: { formatter: duration, hideOverlap: true },
    min: span?.from ?? 0,
    ...(span ? { max: span.to } : {}),
  }) as const;

const RIGHT = 64; // room for a second axis, which not every chart of a page has

export const common = {
  animation: false,
  aria: { enabled: true },
  grid: { left: 80, right: RIGHT, top: 40, bottom: 64 },
  legend: { top: 0 },
  dataZoom: [{ type: "slider", height: 18, bottom: 8, labelFormatter: duration }],
};

const MAX_TICKS = 6;

/** An axis of bytes up to *most* with ticks at round numbers: 0, 2, 4 MiB, not 1.91 and 3.81. */
export function byteAxis(most: number) {
  const interval = 2 ** Math.ceil(Math.log2(Math.max(most, MAX_TICKS) / MAX_TICKS));
  return {
    type: "value",
    min: 0,
    max: interval * Math.max(1, Math.ceil(most / interval)),
    interval,
  } as const;
}

export function highest(points: readonly Point[]): number {
  let most = 0;
  for (const [, y] of points) if (y > most) most = y;
  return most;
}

const at = (each: { at_ms: number }) => each.at_ms;

export function line(name: string, data: readonly Point[]) {
  // A line takes two points: one alone is drawn as such.
  const showSymbol = data.length === 1;
  return { name, type: "line", data, showSymbol, sampling: "lttb", step: "end" } as const;
}

/** What the controller did, and what users changed, for the dashed lines in the charts. */
export type Step = Pick<Schemas["StepRecordView"], "at_ms" | "action">;

const MAX_LABELS = 30; // beside each other; a line that is nearer to another has none
const MAX_MARKS = 10; // more would hide each other on a narrow screen
const DASHED = { lineStyle: { type: "dashed", opacity: 0.9, width: 2 } } as const;

export function marks(samples: readonly Sample[], steps: readonly Step[]) {
  const all = boundaries(samples);
  const every = Math.ceil(all.length / MAX_MARKS);
  const { from, to } = spanOf(samples, [], steps);
  const apart = (one: number, other: number) => Math.abs(one - other) * MAX_LABELS >= to - from;
  let labelled = Number.NEGATIVE_INFINITY;
  const began = all
    .filter((_each, place) => place % every === 0)
    .map(({ at_ms, iteration }) => {
      const room = apart(at_ms, labelled) && steps.every((step) => apart(at_ms, step.at_ms));
      if (room) labelled = at_ms;
      return { xAxis: at_ms, name: room ? `${iteration}` : "" };
    });
  const taken = steps.map(({ at_ms }, place) => ({
    xAxis: at_ms,
    name: `step ${place + 1}`, // what it did stands in the table of steps
    ...DASHED,
  }));
  return {
    silent: true,
    symbol: "none",
    lineStyle: { type: "dotted", opacity: 0.5 },
    label: { formatter: "{b}", position: "insideEndTop", fontSize: 10 },
    data: [...began, ...taken],
  };
}

/** Dirty rate against throughput: a migration converges while the first is the lower one. */
export function rates(
  samples: readonly Sample[],
  steps: readonly Step[] = [],
  span?: Span,
): ChartOption {
  // QEMU counts what is dirtied from the end of the first pass on, and says 0 before.
  const counted = samples.findIndex((each) => each.dirty_pages_per_s > 0);
  const dirty = thin(
    counted < 0 ? [] : samples.slice(counted),
    at,
    (each) => each.dirty_pages_per_s * each.page_size_bytes,
  );
  const sent = thin(samples, at, (each) => each.throughput_bytes_per_s);
  return {
    ...common,
    xAxis: time(span),
    yAxis: {
      ...byteAxis(Math.max(highest(sent), highest(dirty))),
      axisLabel: { formatter: rate },
    },
    tooltip: { trigger: "axis", valueFormatter: (value: unknown) => rate(Number(value)) },
    series: [
      { ...line("Throughput", sent), markLine: marks(samples, steps) },
      line("Dirty rate", dirty),
    ],
  };
}

/** What remains to be sent, and how far QEMU slows the guest down for it. */
export function remaining(
  samples: readonly Sample[],
  render: (value: number) => string,
  steps: readonly Step[] = [],
  span?: Span,
): ChartOption {
  const left = thin(samples, at, (each) => each.remaining_bytes);
  const throttle = thin(samples, at, (each) => each.throttle_percent);
  return {
    ...common,
    xAxis: time(span),
    yAxis: [
      { ...byteAxis(highest(left)), axisLabel: { formatter: render } },
      { type: "value", min: 0, max: 100, axisLabel: { formatter: "{value} %" } },
    ],
    tooltip: { trigger: "axis" },
    series: [
      {
        ...line("Remaining", left),
        markLine: marks(samples, steps),
        tooltip: { valueFormatter: (value: unknown) => render(Number(value)) },
      },
      {
        ...line("Throttle", throttle),
        yAxisIndex: 1,
        tooltip: { valueFormatter: (value: unknown) => `${value} %` },
      },
    ],
  };
}

/** How long the reaper waited, and how full it found the fullest ring. */
export function reaping(rounds: readonly Schemas["RoundView"][], span?: Span): ChartOption {
  const intervals = thin(rounds, at, (each) => each.interval_ms);
  const fills = thin(rounds, at, (each) => Math.max(0, ...each.fills) * 100);
  return {
    ...common,
    xAxis: span ? time(span) : { ...time(span), min: "dataMin" },
    yAxis: [
      { type: "value", min: 0, axisLabel: { formatter: duration } },
      { type: "value", min: 0, axisLabel: { formatter: "{value} %" } },
    ],
    tooltip: { trigger: "axis" },
    series: [
      {
        ...line("Interval", intervals),
        tooltip: { valueFormatter: (value: unknown) => duration(Number(value)) },
      },
      {
        ...line("Highest ring fill", fills),
        yAxisIndex: 1,
        tooltip: { valueFormatter: (value: unknown) => `${Number(value).toFixed(1)} %` },
      },
    ],
  };
}

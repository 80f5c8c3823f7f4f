/** Samples of copied disks as the lines of their charts. */
import type { Schemas } from "../../api/client";
import type { ChartOption } from "../../components/charts/Chart";
import { bytes, rate } from "../../components/text/format";
import { byteAxis, common, highest, line, spanOf, time } from "./series";
import { type Point, thin } from "./thin";

type DiskSample = Schemas["DiskSampleView"];

const at = (each: DiskSample) => each.at_ms;

/** The samples of each disk, by its target. */
function byDisk(samples: readonly DiskSample[]): [string, DiskSample[]][] {
  const found = new Map<string, DiskSample[]>();
  for (const each of samples) {
    const of = found.get(each.target);
    if (of) of.push(each);
    else found.set(each.target, [each]);
  }
  return [...found];
}

function drawn(
  samples: readonly DiskSample[],
  lines: readonly (readonly [string, readonly Point[]])[],
  render: (value: number) => string,
): ChartOption {
  return {
    ...common,
    xAxis: time(spanOf(samples)),
    yAxis: {
      ...byteAxis(Math.max(...lines.map(([, points]) => highest(points)), 0)),
      axisLabel: { formatter: render },
    },
    tooltip: { trigger: "axis", valueFormatter: (value: unknown) => render(Number(value)) },
    series: lines.map(([name, points]) => line(name, points)),
  };
}

/** What is copied of each disk against what the guest writes: a copy catches up while the second is
 * the lower one. */
export function copies(samples: readonly DiskSample[]): ChartOption {
  const lines = byDisk(samples).flatMap(([target, taken]) => [
    [`${target}: copied`, thin(taken, at, (each) => each.bytes_per_s)] as const,
    [`${target}: written`, thin(taken, at, (each) => each.written_bytes_per_s)] as const,
  ]);
  return drawn(samples, lines, rate);
}

/** What remains to be copied of each disk. */
export function toCopy(samples: readonly DiskSample[]): ChartOption {
  const left = (each: DiskSample) => Math.max(0, each.total_bytes - each.copied_bytes);
  const lines = byDisk(samples).map(
    ([target, taken]) => [`${target}: remaining`, thin(taken, at, left)] as const,
  );
  return drawn(samples, lines, bytes);
}

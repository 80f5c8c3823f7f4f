/** What was measured, as people read it: values by the unit of their metric, and effects. */
import type { Schemas } from "../../api/client";
import { bytes, duration, rate } from "./format";

type Unit = Schemas["Unit"];

const SUFFIX: Record<Unit, string> = {
  "": "",
  count: "",
  entries: "",
  percent: " %",
  bytes: " B",
  bytes_per_s: " B/s",
  mib_per_s: " MiB/s",
  ms_per_gib: " ms/GiB",
  us_per_io: " us/IO",
  ns: " ns",
  us: " us",
  ms: " ms",
  s: " s",
};

const LEAST_SHOWN = 0.001;

/** Three figures, or all of those before the point: 0.0123, 12.3, 1,234; and *more*. */
export function number(value: number, more = 0): string {
  return Math.abs(value) < 1000
    ? value.toLocaleString("en", { maximumSignificantDigits: 3 + more })
    : value.toLocaleString("en", { maximumFractionDigits: more });
}

/** *value* of a metric with that unit. */
export function measure(value: number, unit: Unit): string {
  if (unit === "bytes") return bytes(value);
  if (unit === "bytes_per_s") return rate(value);
  if (unit === "ms" && Math.abs(value) >= 1000) return duration(value);
  // Less than that is noise of arithmetic.
  if (value !== 0 && Math.abs(value) < LEAST_SHOWN) return `< ${LEAST_SHOWN}${SUFFIX[unit]}`;
  return number(value) + SUFFIX[unit];
}

/** A value of which only a limit may be known: "> 5 min 0 s"; a dash where there is none. */
export function figure(value: Schemas["Figure"] | null | undefined, unit: Unit): string {
  if (!value) return "–";
  return (value.above ? "> " : "") + measure(value.value, unit);
}

/** How far a ratio is from 1, for an axis: "-96 %", "+50 %"; from ten times on "12 times". */
export function ratio(value: number): string {
  if (value >= 10) return `${number(value)} times`;
  const percent = 100 * (value - 1);
  const text = percent.toFixed(value < 0.01 ? 1 : 0);
  return Number(text) === 0 ? "0 %" : `${percent > 0 ? "+" : ""}${text} %`;
}

/** A share from 0 to 1 in percent; all and none only where it is so: "> 99 %". */
export function share(value: number): string {
  if (value >= 0.995 && value < 1) return "> 99 %";
  return value > 0 && value < 0.005 ? "< 1 %" : `${Math.round(100 * value)} %`;
}

/** 5400 as "1 h 30 min": a time that is only about right. */
export function about(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${number(minutes / 60 / 24)} days`;
}

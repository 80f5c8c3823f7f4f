/** What was measured, as people read it: values by the unit of their metric, and effects. */
import type { Schemas } from "../api/client";
import { bytes, duration, rate } from "./format";

type Unit = Schemas["Unit"];
type Effect = Schemas["Effect"];

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

/** Three figures, or all of those before the point: 0.0123, 12.3, 1,234. */
export function number(value: number): string {
  return Math.abs(value) < 1000
    ? value.toLocaleString("en", { maximumSignificantDigits: 3 })
    : value.toLocaleString("en", { maximumFractionDigits: 0 });
}

/** *value* of a metric with that unit. */
export function measure(value: number, unit: Unit): string {
  if (unit === "bytes") return bytes(value);
  if (unit === "bytes_per_s") return rate(value);
  if (unit === "ms" && Math.abs(value) >= 1000) return duration(value);
  return number(value) + SUFFIX[unit];
}

/** A value of which only a limit may be known: "> 5 min 0 s"; a dash where there is none. */
export function figure(value: Schemas["Figure"] | null | undefined, unit: Unit): string {
  if (!value) return "–";
  return (value.above ? "> " : "") + measure(value.value, unit);
}

/** A number on the scale of an effect: "0.745", "+12 ms", "+30 points". */
export function onScale(value: number, scale: Schemas["Scale"], unit: Unit): string {
  if (scale === "ratio") return value < 10 ? value.toFixed(3) : number(value);
  const sign = value > 0 ? "+" : value < 0 ? "−" : "";
  if (scale === "share") return `${sign}${Math.abs(100 * value).toFixed(0)} points`;
  return sign + measure(Math.abs(value), unit);
}

const BOUND: Record<Schemas["Bound"], string> = {
  exact: "",
  "at least": "≥ ",
  "at most": "≤ ",
  unknown: "~ ",
};

export function effectText(effect: Effect | null | undefined, unit: Unit): string {
  return effect ? BOUND[effect.bound] + onScale(effect.estimate, effect.scale, unit) : "–";
}

/** "0.685 to 0.850"; an end that there is none of is left open. */
export function intervalText(effect: Effect | null | undefined, unit: Unit): string {
  if (!effect || (effect.low === null && effect.high === null)) return "–";
  const end = (value: number) => onScale(value, effect.scale, unit);
  if (effect.low === null) return `up to ${end(effect.high ?? 0)}`;
  if (effect.high === null) return `from ${end(effect.low)}`;
  return `${end(effect.low)} to ${end(effect.high)}`;
}

/** 5400 as "1 h 30 min": a time that is only about right. */
export function about(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${number(minutes / 60 / 24)} days`;
}

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
  return number(value) + SUFFIX[unit];
}

/** A value of which only a limit may be known: "> 5 min 0 s"; a dash where there is none. */
export function figure(value: Schemas["Figure"] | null | undefined, unit: Unit): string {
  if (!value) return "–";
  return (value.above ? "> " : "") + measure(value.value, unit);
}

/** A number on the scale of an effect: "0.745", "+12 ms", "+30 points"; with *more* figures. */
export function onScale(value: number, scale: Schemas["Scale"], unit: Unit, more = 0): string {
  if (scale === "ratio") {
    if (value > 0 && value < 0.1) return String(Number(value.toPrecision(2 + more)));
    return value < 10 ? value.toFixed(3 + more) : number(value, more);
  }
  const sign = value > 0 ? "+" : value < 0 ? "−" : "";
  if (scale === "share") return `${sign}${Math.abs(100 * value).toFixed(value ? more : 0)} points`;
  return sign + measure(Math.abs(value), unit);
}

const MOST_MORE = 10;
const ALIKE = 1e-9;

/** Each on its scale, with as many figures as tell them apart, and from no difference. */
export function distinctTexts(
  values: readonly number[],
  scale: Schemas["Scale"],
  unit: Unit,
): string[] {
  if (scale === "difference") return values.map((value) => onScale(value, scale, unit));
  const known = [...values, scale === "ratio" ? 1 : 0];
  let texts: string[] = [];
  for (let more = 0; more < MOST_MORE; more++) {
    texts = known.map((value) => onScale(value, scale, unit, more));
    const read = texts.map((text) => Number.parseFloat(text.replaceAll(",", "").replace("−", "-")));
    const alike = known.some((value, one) =>
      known.some(
        (other, place) =>
          place > one &&
          read[one] === read[place] &&
          Math.abs(value - other) > ALIKE * Math.max(Math.abs(value), Math.abs(other)),
      ),
    );
    if (!alike) break;
  }
  return texts.slice(0, -1);
}

const BOUND: Record<Schemas["Bound"], string> = {
  exact: "",
  "at least": "≥ ",
  "at most": "≤ ",
  unknown: "~ ",
};

export function effectText(effect: Effect | null | undefined, unit: Unit): string {
  if (!effect) return "–";
  return BOUND[effect.bound] + distinctTexts([effect.estimate], effect.scale, unit)[0];
}

/** "0.685 to 0.850"; an end that there is none of is left open. */
export function intervalText(effect: Effect | null | undefined, unit: Unit): string {
  if (!effect || (effect.low === null && effect.high === null)) return "–";
  const ends = [effect.low, effect.high].filter((end) => end !== null);
  const texts = distinctTexts(ends, effect.scale, unit);
  if (texts.length === 2) return texts.join(" to ");
  return `${effect.low === null ? "up to" : "from"} ${texts[0]}`;
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

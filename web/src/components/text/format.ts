/** Numbers as people read them, always with their unit. */

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

function figures(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** 1610612736 as "1.5 GiB". */
export function bytes(value: number): string {
  let scaled = value;
  let unit = 0;
  while (Math.abs(scaled) >= 1024 && unit < BINARY.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${figures(scaled)} ${BINARY[unit]}`;
}

/** 1048576 as "1 MiB/s". */
export function rate(value: number): string {
  return `${bytes(value)}/s`;
}

/** 85 as "85 ms", 4200 as "4.2 s", 250000 as "4 min 10 s". */
export function duration(milliseconds: number): string {
  const rounded = Math.round(milliseconds);
  if (Math.abs(rounded) < 1000) return `${rounded} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 120) return `${figures(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 7200) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(whole / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const UNIT = /(?<=\d) (?=(?:%|[mµn]?s|min|h|[KMGTP]?i?B(?:\/s)?)(?!\w))|(?<=[<>]=?) (?=\d)/g;

/** Bounds as pages write them: "<= -91 %" as "≤ -91 %". */
export function bounded(text: string): string {
  return text.replace(/<= ?/g, "≤\u00a0").replace(/>= ?/g, "≥\u00a0");
}

/** No number is torn from its unit where a line ends: "95 %", "1.5 GiB", "> 10 s". */
export function unbroken(text: string | undefined): string {
  return (text ?? "").replace(UNIT, "\u00a0");
}

const NAME = /^(?:(?:libvirt|multifd|qemu|virsh|vmtune)\b|\S*[\d_=/.`"'])/;

/** "no profile" as "No profile"; commands and other names at the beginning stay as they are. */
export function sentence(text: string): string {
  if (NAME.test(text)) return text;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** 1 as "1 sample", 1200 as "1,200 samples". */
export function counted(value: number, one: string): string {
  return `${count(value)} ${one}${value === 1 ? "" : "s"}`;
}

export function percent(share: number): string {
  return `${figures(share)} %`;
}

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** Where a migration goes; nobody may know that of one that somebody else began. */
export function way(migration: { source: string; destination: string | null }): string {
  return `${migration.source} to ${migration.destination ?? "an unknown host"}`;
}

/** A moment in the reader's own zone and way. */
export function moment(iso: string): string {
  return LOCAL.format(new Date(iso));
}

/** The same in UTC: "2026-11-21 19:05:01 UTC". */
export function utc(iso: string): string {
  return `${new Date(iso).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

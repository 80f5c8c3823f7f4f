import { expect, test } from "vitest";
import {
  bounded,
  bytes,
  count,
  counted,
  duration,
  percent,
  rate,
  sentence,
  unbroken,
  utc,
  way,
} from "./format";

test.each([
  [0, "0 B"],
  [1023, "1,023 B"],
  [1024, "1 KiB"],
  [1610612736, "1.5 GiB"],
  [2 ** 60, "1,024 PiB"],
  [-2048, "-2 KiB"],
])("%d bytes", (value, text) => {
  expect(bytes(value)).toBe(text);
});

test.each([
  ["to 95 %, at 1.5 GiB/s", "to 95_%, at 1.5_GiB/s"],
  ["> 3,168 ms to > 3,283 ms, 6 runs", ">_3,168_ms to >_3,283_ms, 6 runs"],
  ["4 min 10 s, 2 hosts, 3 sets", "4_min 10_s, 2 hosts, 3 sets"],
  ["", ""],
])("%s keeps its units", (text, kept) => {
  expect(unbroken(text).replaceAll("\u00a0", "_")).toBe(kept);
});

test("a sentence begins as one", () => {
  expect([sentence("no profile"), sentence("")]).toEqual(["No profile", ""]);
});

test.each([
  "vmtune forecast VM",
  "`vmtune vm list` shows them",
  "libvirt's log",
  "web1 is gone",
  "a/b",
])("%s begins with a name, which stays as it is", (text) => expect(sentence(text)).toBe(text));

test("bounds are written with one sign", () => {
  expect(bounded("<= -91 %")).toBe("≤\u00a0-91 %");
  expect(bounded(">= 1.28 times")).toBe("≥\u00a01.28 times");
  expect(bounded("-96 %")).toBe("-96 %");
});

test.each([
  [0, "0 ms"],
  [85, "85 ms"],
  [999.6, "1 s"],
  [4200, "4.2 s"],
  [119_990, "120 s"],
  [250_000, "4 min 10 s"],
  [7_200_000, "2 h 0 min"],
])("%d milliseconds", (value, text) => {
  expect(duration(value)).toBe(text);
});

test("rates, counts and shares have their unit", () => {
  expect([rate(1048576), count(65536), percent(2.345)]).toEqual(["1 MiB/s", "65,536", "2.35 %"]);
});

test("what is counted is one or several", () => {
  expect([1, 0, 1200].map((value) => counted(value, "sample"))).toEqual([
    "1 sample",
    "0 samples",
    "1,200 samples",
  ]);
});

test("a time in UTC says so", () => {
  expect(utc("2026-11-21T20:05:01+01:00")).toBe("2026-11-21 19:05:01 UTC");
});

test("a migration whose destination nobody knows says that", () => {
  expect(way({ source: "a", destination: "b" })).toBe("a to b");
  expect(way({ source: "a", destination: null })).toBe("a to an unknown host");
});

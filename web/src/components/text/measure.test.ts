import { expect, test } from "vitest";
import { about, figure, measure, ratio, share } from "./measure";

test("values have the unit of their metric", () => {
  expect(measure(41.5, "ms")).toBe("41.5 ms");
  expect(measure(4200, "ms")).toBe("4.2 s");
  expect(measure(1536, "bytes")).toBe("1.5 KiB");
  expect(measure(1048576, "bytes_per_s")).toBe("1 MiB/s");
  expect(measure(7193.4, "ms_per_gib")).toBe("7,193 ms/GiB");
  expect(measure(99.94, "percent")).toBe("99.9 %");
  expect(measure(14, "count")).toBe("14");
});

test("a limit is told as one, and nothing as a dash", () => {
  expect(figure({ value: 300, above: true }, "ms")).toBe("> 300 ms");
  expect(figure(null, "ms")).toBe("–");
});

test("ratios on an axis are told in percent, and many times as that", () => {
  expect([0.004, 0.04, 1, 1.5, 12].map(ratio)).toEqual([
    "-99.6 %",
    "-96 %",
    "0 %",
    "+50 %",
    "12 times",
  ]);
});

test("what is noise of arithmetic is not written as a number", () => {
  expect(measure(4.94e-7, "ms")).toBe("< 0.001 ms");
});

test("times that are about right", () => {
  expect(about(64)).toBe("64 s");
  expect(about(150)).toBe("3 min");
  expect(about(5400)).toBe("1 h 30 min");
  expect(about(3 * 86400)).toBe("3 days");
});

test("all and none are told only where it is so", () => {
  expect([1, 0.9975, 0.97, 0.001, 0].map(share)).toEqual([
    "100 %",
    "> 99 %",
    "97 %",
    "< 1 %",
    "0 %",
  ]);
});

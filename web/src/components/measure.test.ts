import { expect, test } from "vitest";
import { about, effectText, figure, intervalText, measure, onScale, share } from "./measure";

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

test("effects are told on their scale", () => {
  expect(onScale(0.6604, "ratio", "ms")).toBe("0.660");
  expect(onScale(0.3, "share", "")).toBe("+30 points");
  expect(onScale(-12, "difference", "ms")).toBe("−12 ms");
  expect(onScale(0, "difference", "ms")).toBe("0 ms");
});

const EFFECT = {
  scale: "ratio",
  estimate: 0.6,
  bound: "at least",
  low: 0.5,
  high: null,
  level: 0.95,
  margin_low: 0.95,
  margin_high: 1.05,
  rank: 1,
  differences: 1,
} as const;

test("what is known only as a bound says so, and an open end is left open", () => {
  expect(effectText(EFFECT, "ms")).toBe("≥ 0.600");
  expect(intervalText(EFFECT, "ms")).toBe("from 0.500");
  expect(intervalText({ ...EFFECT, low: null, high: 0.7 }, "ms")).toBe("up to 0.700");
  expect(intervalText({ ...EFFECT, high: 0.7 }, "ms")).toBe("0.500 to 0.700");
  expect(intervalText({ ...EFFECT, low: null }, "ms")).toBe("–");
  expect(effectText(undefined, "ms")).toBe("–");
});

test("times that are about right", () => {
  expect(about(64)).toBe("64 s");
  expect(about(150)).toBe("3 min");
  expect(about(5400)).toBe("1 h 30 min");
  expect(about(3 * 86400)).toBe("3 days");
});

test("small effects are not nothing, and an interval's ends are told apart", () => {
  const interval = (low: number, high: number, scale: "ratio" | "share" = "ratio") =>
    intervalText({ ...EFFECT, scale, low, high }, "ms");
  expect(interval(0.0003, 0.00034)).toBe("0.0003 to 0.00034");
  expect(interval(0.9997, 1.0002)).toBe("0.9997 to 1.0002");
  expect(interval(12.301, 12.304)).toBe("12.301 to 12.304");
  expect(interval(1, 1)).toBe("1.000 to 1.000");
  expect(interval(-0.001, 0.002, "share")).toBe("−0.1 points to +0.2 points");
  for (let exponent = -9; exponent <= 9; exponent++) {
    for (const wide of [1e-7, 1e-3, 0.5]) {
      const low = 10 ** exponent;
      const [first, last] = interval(low, low * (1 + wide))
        .split(" to ")
        .map((text) => Number(text.replaceAll(",", "")));
      expect(first).toBeGreaterThan(0);
      expect(last).toBeGreaterThan(first as number);
    }
  }
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

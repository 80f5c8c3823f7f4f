import { expect, test } from "vitest";
import { waited } from "./waited";

const SINCE_10_1 = {
  blocked_ms: 12,
  vcpu_blocked_ms: [12, 40],
  latency_ns: 410_000,
  latency_p99_at_most_us: 2048,
  latency_counts: [0, 3],
};

test("without post-copy nothing is said", () => {
  expect(waited(null)).toEqual([]);
});

test("what QEMU has counted", () => {
  expect(waited(SINCE_10_1)).toEqual([
    ["Guest stood still for pages", "12 ms"],
    ["Each vCPU waited", "12 ms, 40 ms"],
    ["99 % of pages within", "2,048 µs"],
  ]);
});

test("before QEMU 10.1 there is no latency", () => {
  const counted = { ...SINCE_10_1, latency_ns: null, latency_p99_at_most_us: null };
  expect(waited(counted).map(([name]) => name)).toEqual([
    "Guest stood still for pages",
    "Each vCPU waited",
  ]);
});

import { expect, test } from "vitest";
import { rates } from "./rates";

test("what is not measured yet is not shown as nothing", () => {
  expect(rates({ throughput_bytes_per_s: null, dirty_bytes_per_s: null })).toEqual([
    "throughput not known yet",
    "dirty rate not known yet",
  ]);
  expect(rates({ throughput_bytes_per_s: 0, dirty_bytes_per_s: 1048576 })).toEqual([
    "sends 0 B/s",
    "dirties 1 MiB/s",
  ]);
  expect(rates({})).toEqual([]);
});

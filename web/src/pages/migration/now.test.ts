import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { outcome, progress } from "../../test/vms";
import { standing } from "./now";

const said = (...given: Parameters<typeof standing>) => Object.fromEntries(standing(...given));
const LIMITED = { outcomes: [outcome("downtime_limit_ms", "effective")] };

test("before the first figures nothing is made up", () => {
  expect(standing(LIMITED, undefined, undefined)).toEqual([["Phase", "not known yet"]]);
});

test.each([
  [10, 20, "10 MiB/s against 20 MiB/s: it converges"],
  [20, 20, "20 MiB/s against 20 MiB/s: it does not converge"],
  [0, 20, "0 B/s against 20 MiB/s"],
])("dirtying %d and sending %d MiB/s", (dirty, sent, words) => {
  const now = progress({
    dirty_bytes_per_s: dirty * 2 ** 20,
    throughput_bytes_per_s: sent * 2 ** 20,
  });
  expect(said(LIMITED, now, undefined)["Dirty rate against throughput"]).toBe(words);
});

test("the expected downtime stands beside what QEMU allows itself", () => {
  const now = progress({ expected_downtime_ms: 900 });
  expect(said(LIMITED, now, undefined)["Expected downtime"]).toBe("900 ms, at most 700 ms");
  expect(said({ outcomes: [] }, now, undefined)["Expected downtime"]).toBe("900 ms");
});

test("every way in which QEMU slows the guest down is told", () => {
  expect(said(LIMITED, progress(), undefined)["Guest slowed down"]).toBe("not by QEMU");
  const sample = { dirty_limit_throttle_us: 1500 } as Schemas["SampleView"];
  const now = progress({ throttle_percent: 40 });
  expect(said(LIMITED, now, sample)["Guest slowed down"]).toBe(
    "40 % of its CPU time, by QEMU's throttle; 1,500 µs a round, by the dirty limit",
  );
});

test("the rings are told where a reaper runs", () => {
  expect(said(LIMITED, progress(), undefined)["Dirty rings"]).toBeUndefined();
  const now = progress({ reaper: { interval_ms: 250, fullest: 0.5 } });
  expect(said(LIMITED, now, undefined)["Dirty rings"]).toBe(
    "emptied every 250 ms, the fullest 50 % full",
  );
});

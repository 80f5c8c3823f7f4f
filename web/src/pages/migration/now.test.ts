import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { outcome, progress } from "../../test/vms";
import { standing } from "./now";

const said = (...given: Parameters<typeof standing>) => Object.fromEntries(standing(...given));
const LIMITED = { outcomes: [outcome("downtime_limit_ms", "effective")], phase: null };

test("before the first figures nothing is made up", () => {
  expect(standing(LIMITED, undefined, undefined)).toEqual([["Phase", "unknown"]]);
  expect(standing({ ...LIMITED, phase: "disks" }, undefined, undefined)).toEqual([
    ["Phase", "disks are copied, then the memory"],
  ]);
});

test.each([
  [10, "dirty 10 MiB/s, sent 20 MiB/s"],
  [0, "dirty 0 B/s, sent 20 MiB/s"],
  [null, "dirty not known yet, sent 20 MiB/s"],
])("dirtying %d MiB/s", (dirty, words) => {
  const now = progress({ dirty_bytes_per_s: dirty === null ? null : dirty * 2 ** 20 });
  expect(said(LIMITED, now, undefined)["Dirty rate and throughput"]).toBe(words);
});

test("whether it will end stands first", () => {
  const outlook = {
    ends: true,
    left_ms: 5000,
    least_left_ms: 4000,
    most_left_ms: 9000,
    silence_ms: 300,
    pass_left_ms: 3000,
    needs: null,
  };
  expect(standing(LIMITED, progress({ outlook }), undefined)[1]).toEqual([
    "Outlook",
    "about 5.0 s left (4.0 s to 9.0 s)",
  ]);
});

test("the expected downtime stands beside what QEMU allows itself", () => {
  const now = progress({ expected_downtime_ms: 900 });
  expect(said(LIMITED, now, undefined)["Expected downtime"]).toBe("900 ms, at most 700 ms");
  expect(said({ outcomes: [], phase: null }, now, undefined)["Expected downtime"]).toBe("900 ms");
});

test("every way in which QEMU slows the guest down is told", () => {
  expect(said(LIMITED, progress(), undefined)["Guest throttling"]).toBe("none");
  const sample = { dirty_limit_throttle_us: 1500 } as Schemas["SampleView"];
  const now = progress({ throttle_percent: 40 });
  expect(said(LIMITED, now, sample)["Guest throttling"]).toBe(
    "40 % of its CPU time, by QEMU's throttle; 1,500 µs per round, by the dirty limit",
  );
});

test("the rings are told where a reaper runs", () => {
  expect(said(LIMITED, progress(), undefined)["Dirty rings"]).toBeUndefined();
  const now = progress({ reaper: { interval_ms: 250, fullest: 0.5 } });
  expect(said(LIMITED, now, undefined)["Dirty rings"]).toBe(
    "reaped every 250 ms, highest fill 50 %",
  );
});

test("of the memory nothing is told while disks are copied", () => {
  const now = progress({ phase: "disks", disks: [], disks_left_ms: 12_000 });
  expect(said(LIMITED, now, undefined)).toEqual({
    Phase: "disks are copied, then the memory",
    Disks: "about 12 s left",
  });
});

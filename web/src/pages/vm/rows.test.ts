import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { outcome, reading } from "../../test/vms";
import { inWords, settingRows } from "./rows";

const TABLE = [
  { name: "multifd", route: "migrate", takes_effect: "at the next migration", overwriter: "x" },
  { name: "dirty_ring_size_entries", route: "boot", takes_effect: "at the VM's next start" },
  { name: "downtime_limit_ms", route: "monitor", takes_effect: "now", overwriter: "" },
] as Schemas["TunableView"][];

test("only what something is wanted of is shown, in the table's order", () => {
  const outcomes = [outcome("downtime_limit_ms", "effective"), outcome("multifd", "rejected")];
  const rows = settingRows(TABLE, outcomes, {}, {}, false);
  expect(rows.map((row) => row.name)).toEqual(["multifd", "downtime_limit_ms"]);
  expect(rows[0]).toMatchObject({
    wanted: "700 ms",
    current: "not read",
    route: "migrate",
    when: "at the next migration",
    overwriter: "x",
  });
});

test("what nothing is wanted of is unset, not zero and not off", () => {
  const rows = settingRows(TABLE, [], { multifd: reading("off") }, {}, true);
  expect(rows).toHaveLength(TABLE.length);
  expect(rows[0]).toMatchObject({ wanted: null, current: "off", outcome: null });
});

test("what the next start brings is told only where it is something else", () => {
  const now = { dirty_ring_size_entries: reading("0"), multifd: reading("off") };
  const next = { dirty_ring_size_entries: reading("65,536"), multifd: reading("off") };
  const rows = settingRows(TABLE, [], now, next, true);
  expect(rows.map((row) => row.atNextStart)).toEqual([null, "65,536", null]);
});

test.each([
  [reading("8"), "8"],
  [reading("unknown", { value: null, why_unknown: "no iothread" }), "unknown (no iothread)"],
  [
    reading("unknown", { value: null, part_texts: { io1: "8", io2: "16" }, why_unknown: "differ" }),
    "io1: 8, io2: 16",
  ],
  [undefined, "not read"],
])("a reading in words: %j", (given, words) => {
  expect(inWords(given)).toBe(words);
});

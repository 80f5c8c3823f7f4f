import { expect, test } from "vitest";
import { difference } from "./difference";

test("what is set, changed and unset is told, and nothing else", () => {
  const before = { multifd: "on", multifd_channels: "2", zero_copy: "off" };
  const after = { multifd: "on", multifd_channels: "4", auto_converge: "on" };
  expect(difference(before, after)).toEqual([
    { tunable: "multifd_channels", before: "2", after: "4" },
    { tunable: "zero_copy", before: "off", after: null },
    { tunable: "auto_converge", before: null, after: "on" },
  ]);
});

test("unset is not off", () => {
  expect(difference({ multifd: "off" }, {})).toEqual([
    { tunable: "multifd", before: "off", after: null },
  ]);
});

import { expect, test } from "vitest";
import { labelChanges } from "./labels";

test("labels are set and removed as at the command line", () => {
  expect(labelChanges("tier=db, zone=a  old-")).toEqual({
    changes: { tier: "db", zone: "a", old: null },
    faults: [],
  });
});

test("what is no label is told", () => {
  expect(labelChanges("tier -  =db x=1").faults).toEqual(["tier", "-", "=db"]);
  expect(labelChanges("").changes).toEqual({});
});

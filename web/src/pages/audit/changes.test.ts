import { expect, test } from "vitest";
import { deed, fieldChanges } from "./changes";

const change = { what: "profile", key: "fast" };

test("what was altered is told before and after, field by field", () => {
  const altered = { ...change, before: { current: 1 }, after: { current: 2, note: "" } };
  expect(deed(altered)).toBe("changed");
  expect(fieldChanges(altered)).toEqual([
    { field: "current", before: "1", after: "2" },
    { field: "note", before: "none", after: "empty" },
  ]);
});

test("what was made had nothing before, what was deleted has nothing after", () => {
  const made = { ...change, before: null, after: { values: { multifd: true } } };
  expect(deed(made)).toBe("made");
  expect(fieldChanges(made)).toEqual([
    { field: "values", before: null, after: '{"multifd":true}' },
  ]);
  const deleted = { ...change, before: { uri: "x" }, after: null };
  expect(deed(deleted)).toBe("deleted");
  expect(fieldChanges(deleted)).toEqual([{ field: "uri", before: "x", after: null }]);
});

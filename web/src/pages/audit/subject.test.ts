import { expect, test } from "vitest";
import { pageOf, shortened } from "./subject";

test.each([
  ["run 55e55ea5-e5a7-4139-b010-2b4796b6656b", "/bench/runs/55e55ea5-e5a7-4139-b010-2b4796b6656b"],
  ["profile slow link/2", "/profiles/slow%20link%2F2"],
  ["host a, evacuation 7", null],
  ["token l6fw6acjarc7", null],
  ["3 more attempts within a minute", null],
  ["toString x", null],
  ["", null],
])("%s leads to %s", (subject, page) => {
  expect(pageOf(subject)).toBe(page);
});

test("ids are short", () => {
  const id = "55e55ea5-e5a7-4139-b010-2b4796b6656b";
  expect(shortened(`host a, evacuation ${id}`)).toBe("host a, evacuation 55e55ea5");
  expect(shortened("profile slow link/2")).toBe("profile slow link/2");
});

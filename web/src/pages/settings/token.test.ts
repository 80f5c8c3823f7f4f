import { expect, test } from "vitest";
import { asToken } from "./token";

const TYPED = { name: " ci ", scopes: ["read"], hosts: "", selector: "", lastDay: "" };

test("nothing typed restricts nothing", () => {
  expect(asToken(TYPED)).toEqual({
    name: "ci",
    scopes: ["read"],
    hosts: null,
    selector: {},
    expires_at: null,
  });
});

test("hosts, labels and the last day are taken as typed", () => {
  const made = asToken({
    ...TYPED,
    hosts: "a, b,",
    selector: "tier=db, q=a=b",
    lastDay: "2027-01-31",
  });
  expect(made.hosts).toEqual(["a", "b"]);
  expect(made.selector).toEqual({ tier: "db", q: "a=b" });
  const end = new Date(made.expires_at ?? 0);
  expect([end.getFullYear(), end.getMonth(), end.getDate(), end.getHours()]).toEqual([
    2027, 0, 31, 23,
  ]);
});

test("a label without a value is left to the service to refuse", () => {
  expect(asToken({ ...TYPED, selector: "tier" }).selector).toEqual({ tier: "" });
});

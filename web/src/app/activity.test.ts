import { expect, test } from "vitest";
import { type Activity, addressOf, endsSince, inShort, lookOf, summed } from "./activity";

const one = (id: string, state: string, more: Partial<Activity> = {}): Activity => ({
  kind: "migration",
  id,
  title: "web1",
  detail: "a to b",
  state,
  ended: state !== "active",
  failure: "",
  created_at: "2026-11-21T12:00:00Z",
  ended_at: null,
  host: null,
  actor: null,
  ...more,
});

test("only what ran when it was last looked at has ended since", () => {
  const before = [one("m1", "active"), one("m2", "completed"), one("m3", "active")];
  const now = [
    one("m1", "failed"),
    one("m2", "completed"),
    one("m3", "active"),
    one("m4", "failed"),
  ];
  expect(endsSince(before, now).map(({ id }) => id)).toEqual(["m1"]);
});

test("many ends are summed up, one is told with its kind", () => {
  expect(summed([one("1", "completed"), one("2", "failed"), one("3", "completed")])).toBe(
    "2 completed, 1 failed",
  );
  expect(inShort(one("1", "completed"))).toBe("web1: migration completed");
});

test("its state has its colour, its page its address", () => {
  expect([
    lookOf(one("1", "active")),
    lookOf(one("1", "failed")),
    lookOf(one("1", "cancelled")),
    lookOf(one("1", "ended as planned", { kind: "run" })),
  ]).toEqual(["info", "danger", "warning", "success"]);
  expect(addressOf(one("e", "running", { kind: "evacuation", host: "r 1" }))).toBe(
    "/hosts/r%201/evacuations/e",
  );
  expect(addressOf(one("a", "applied", { kind: "application" }))).toBeNull();
});

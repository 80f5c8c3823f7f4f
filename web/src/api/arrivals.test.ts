import { expect, test } from "vitest";
import { ARRIVES_WITHIN_MS, arrivalsAfter, arriving } from "./arrivals";
import type { LiveEvent } from "./live";

const AT = "2026-11-22T02:00:00Z";
const TOLD = { vm: "v", name: "web1", profile: "", revision: 0, given: {}, withheld: {} };

function event(topic: LiveEvent["topic"], data: LiveEvent["data"], id: number | null = 1) {
  return { id, at: id === null ? null : AT, topic, subject: "s", data } as LiveEvent;
}

const ARRIVED = arrivalsAfter([], event("arrival", TOLD));

test("what the hook tells is known, the latest of each VM", () => {
  expect(ARRIVED).toEqual([{ ...TOLD, at: AT }]);
  const again = arrivalsAfter(ARRIVED, event("arrival", { ...TOLD, profile: "fast" }));
  expect(again.map((each) => each.profile)).toEqual(["fast"]);
  expect(arrivalsAfter(ARRIVED, event("arrival", { ...TOLD, vm: "other" }))).toHaveLength(2);
});

test("what vmtune itself migrates is not told twice", () => {
  expect(arrivalsAfter([], event("arrival", { ...TOLD, migration: "m" }))).toEqual([]);
});

test("it arrives until its migration is over", () => {
  const at = (state: string, vm = "v") => event("migration", { vm, state });
  expect(arrivalsAfter(ARRIVED, at("active"))).toBe(ARRIVED);
  expect(arrivalsAfter(ARRIVED, at("completed", "other"))).toBe(ARRIVED);
  expect(arrivalsAfter(ARRIVED, event("vm", { vm: "v" }))).toBe(ARRIVED);
  expect(arrivalsAfter(ARRIVED, event("migration", { vm: "v" }, null))).toBe(ARRIVED);
  for (const state of ["completed", "failed", "cancelled", "unknown"]) {
    expect(arrivalsAfter(ARRIVED, at(state))).toEqual([]);
  }
});

test("one of which no more is heard is forgotten", () => {
  const since = Date.parse(AT) + ARRIVES_WITHIN_MS;
  expect(arriving(ARRIVED, since - 1)).toHaveLength(1);
  expect(arriving(ARRIVED, since)).toEqual([]);
});

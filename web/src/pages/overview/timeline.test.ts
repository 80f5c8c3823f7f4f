import { expect, test } from "vitest";
import { barsOf, lookOf, type Move, periodOf } from "./timeline";

const NOW = Date.parse("2026-11-21T12:00:00Z");
const HOUR = 3_600_000;
const at = (hours: number) => new Date(NOW - hours * HOUR).toISOString();

function move(from: number, to: number | null, more: Partial<Move> = {}): Move {
  return {
    id: `${from}-${to}`,
    vm: "v",
    vm_name: "web1",
    source: "a",
    destination: "b",
    trigger: "vmtune",
    state: to === null ? "active" : "completed",
    created_at: at(from),
    active_at: at(from),
    ended_at: to === null ? null : at(to),
    downtime_ms: null,
    total_time_ms: null,
    exceeded: false,
    intent_broken: false,
    ...more,
  };
}

test("what overlaps is in lanes of its own, what follows takes a free one", () => {
  const bars = barsOf([move(2, 1), move(10, 4), move(8, 6)], NOW - 10 * HOUR, NOW, 3);
  expect(bars.map(({ left, width, lane }) => [left, width, lane])).toEqual([
    [0, 60, 0],
    [20, 20, 1],
    [80, 10, 0],
  ]);
});

test("where all lanes are taken the last has several", () => {
  const many = [move(5, 1), move(5, 1), move(5, 1)];
  expect(barsOf(many, NOW - 5 * HOUR, NOW, 2).map(({ lane }) => lane)).toEqual([0, 1, 1]);
});

test("what has not ended reaches to the present, and what began earlier begins at the edge", () => {
  const [bar] = barsOf([move(9, null)], NOW - 3 * HOUR, NOW, 2);
  expect([bar?.left, bar?.width]).toEqual([0, 100]);
});

test("an exceeded limit shows in what completed", () => {
  expect(lookOf(move(2, 1, { exceeded: true }))).toBe("exceeded");
  expect(lookOf(move(2, 1, { state: "failed", exceeded: true }))).toBe("failed");
  expect(lookOf(move(2, 1, { state: "cancelled" }))).toBe("other");
});

test("the timeline reaches as far back as there is something, up to a day", () => {
  const ago = [0.1, 0.9, 2.5, 30].map((hours) => periodOf([move(hours, 0)], NOW));
  expect([periodOf([], NOW), ...ago]).toEqual([1, 0.25, 1, 3, 24]);
});

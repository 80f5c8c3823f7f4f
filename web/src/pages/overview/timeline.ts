/** Migrations over time: which part of the width each takes, and in which lane. */
import type { Schemas } from "../../api/client";

export type Move = Schemas["MoveView"];
export type Look = "active" | "exceeded" | "failed" | "completed" | "other";

export interface Bar {
  move: Move;
  /** From the left and how wide, in percent of the whole. */
  left: number;
  width: number;
  lane: number;
  look: Look;
}

const LEAST_PERCENT = 0.4; // what is shorter could not be seen

export function lookOf(move: Move): Look {
  if (move.ended_at === null) return "active";
  if (move.state === "failed") return "failed";
  if (move.exceeded) return "exceeded";
  return move.state === "completed" ? "completed" : "other";
}

/**
 * The bars of *moves* between two moments, each in the first lane that is free there; where none
 * is, in the last.
 */
export function barsOf(moves: readonly Move[], since: number, until: number, lanes: number): Bar[] {
  const free: number[] = Array.from({ length: lanes }, () => Number.NEGATIVE_INFINITY);
  const share = (at: number) => (100 * (at - since)) / (until - since);
  return [...moves]
    .map((move) => ({ move, began: Date.parse(move.active_at ?? move.created_at) }))
    .sort((one, two) => one.began - two.began)
    .map(({ move, began }) => {
      const ended = move.ended_at === null ? until : Date.parse(move.ended_at);
      const left = Math.min(Math.max(share(began), 0), 100 - LEAST_PERCENT);
      const width = Math.max(Math.min(share(ended), 100) - left, LEAST_PERCENT);
      const found = free.findIndex((end) => end <= left);
      const lane = found < 0 ? lanes - 1 : found;
      free[lane] = left + width;
      return { move, left, width, lane, look: lookOf(move) };
    });
}

/** How far back the timeline has to reach to show all, of some round periods in hours. */
export function periodOf(moves: readonly Move[], now: number): number {
  if (moves.length === 0) return 1;
  const HOUR = 3_600_000;
  const oldest = Math.min(
    now,
    ...moves.map((each) => Date.parse(each.active_at ?? each.created_at)),
  );
  return [0.25, 1, 3, 6, 12].find((hours) => now - oldest <= hours * HOUR) ?? 24;
}

/** A campaign's runs as a grid for each set of conditions: arms by blocks. */
import type { Schemas } from "../../api/client";

export type Planned = Schemas["PlannedRunView"];

/** @property blocks the run of each block, by its index; null where its page is not there yet. */
export interface GridRow {
  arm: string;
  blocks: readonly (Planned | null)[];
}

export interface CellGrid {
  cell: string;
  rows: readonly GridRow[];
}

export interface Grids {
  cells: readonly CellGrid[];
  warmUp: readonly Planned[];
}

/** *runs* in their places; an arm that has none yet has an empty row. */
export function gridsOf(runs: readonly Planned[], arms: readonly string[], blocks: number): Grids {
  const cells = new Map<string, Map<string, (Planned | null)[]>>();
  const warmUp: Planned[] = [];
  for (const run of runs) {
    if (run.block === 0) {
      warmUp.push(run);
      continue;
    }
    let rows = cells.get(run.cell);
    if (rows === undefined) {
      rows = new Map(arms.map((arm) => [arm, Array<Planned | null>(blocks).fill(null)]));
      cells.set(run.cell, rows);
    }
    const row = rows.get(run.arm);
    if (row !== undefined && run.block <= blocks) row[run.block - 1] = run;
  }
  return {
    cells: [...cells].map(([cell, rows]) => ({
      cell,
      rows: [...rows].map(([arm, found]) => ({ arm, blocks: found })),
    })),
    warmUp,
  };
}

/** Where a run of the plan stands, in words. In a campaign that has *ended* none is to come. */
export function stateOf(run: Planned, ended = false): string {
  const state = run.state ?? (ended ? "not run" : "planned");
  const again = run.attempts > 1 ? `, attempt ${run.attempts}` : "";
  return state + again;
}

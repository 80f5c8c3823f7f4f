import { render, screen, within } from "@testing-library/react";
import { MemoryRouter } from "react-router";
import { expect, test } from "vitest";
import { BlockGrid } from "./BlockGrid";
import { gridsOf, type Planned, stateOf } from "./grid";

function planned(part: Partial<Planned>): Planned {
  return {
    number: 1,
    block: 1,
    position: 1,
    cell: "idle",
    scenario: "mine/idle",
    arm: "stock",
    state: null,
    run: null,
    attempts: 0,
    ...part,
  };
}

const RUNS = [
  planned({ number: 1, block: 0, arm: "stock", state: "completed", run: "w", attempts: 1 }),
  planned({ number: 2, block: 1, arm: "tuned", state: "completed", run: "r1", attempts: 2 }),
  planned({ number: 3, block: 1, arm: "stock", state: "failed", run: "r2", attempts: 1 }),
  planned({ number: 4, block: 2, arm: "stock", state: "running", run: "r3", attempts: 1 }),
];

test("every run stands in its block and arm, in the arms' order", () => {
  const grids = gridsOf(RUNS, ["stock", "tuned"], 3);
  expect(grids.warmUp.map((run) => run.run)).toEqual(["w"]);
  expect(grids.cells).toHaveLength(1);
  const [stock, tuned] = grids.cells[0]?.rows ?? [];
  expect(stock?.arm).toBe("stock");
  expect(stock?.blocks.map((run) => run?.run ?? null)).toEqual(["r2", "r3", null]);
  expect(tuned?.blocks.map((run) => run?.run ?? null)).toEqual(["r1", null, null]);
});

test("each set of conditions has a grid of its own", () => {
  const busy = planned({ cell: "busy", arm: "tuned", block: 3, run: "b" });
  const grids = gridsOf([...RUNS, busy], ["stock", "tuned"], 3);
  expect(grids.cells.map((each) => each.cell)).toEqual(["idle", "busy"]);
  expect(grids.cells[1]?.rows[1]?.blocks[2]).toBe(busy);
});

test("what is not of the plan is left out", () => {
  const odd = [planned({ block: 9 }), planned({ arm: "gone" })];
  const [grid] = gridsOf(odd, ["stock"], 2).cells;
  expect(grid?.rows).toEqual([{ arm: "stock", blocks: [null, null] }]);
});

test("a repeated run says so", () => {
  expect(stateOf(planned({}))).toBe("planned");
  expect(stateOf(planned({}), true)).toBe("not run");
  expect(stateOf(planned({ state: "running", attempts: 2 }))).toBe("running, attempt 2");
});

test("a run that was made is a link, one to come is an image, both named", () => {
  const shown = [...RUNS, planned({ number: 5, block: 2, arm: "tuned" })];
  render(
    <MemoryRouter>
      <BlockGrid grids={gridsOf(shown, ["stock", "tuned"], 2)} ended={false} />
    </MemoryRouter>,
  );
  const table = screen.getByRole("grid", { name: "Blocks: arms by blocks" });
  expect(
    within(table).getByRole("link", { name: "tuned, block 1: completed, attempt 2" }),
  ).toHaveAttribute("href", "/bench/runs/r1");
  expect(within(table).getByRole("link", { name: "stock, block 1: failed" })).toBeVisible();
  expect(within(table).getByRole("img", { name: "tuned, block 2: planned" })).toBeVisible();
  expect(screen.getByRole("link", { name: "warm-up, stock: completed" })).toBeVisible();
});

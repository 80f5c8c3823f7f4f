import { Icon, type IconComponentProps } from "@patternfly/react-core";
import BanIcon from "@patternfly/react-icons/dist/esm/icons/ban-icon";
import CheckCircleIcon from "@patternfly/react-icons/dist/esm/icons/check-circle-icon";
import ExclamationTriangleIcon from "@patternfly/react-icons/dist/esm/icons/exclamation-triangle-icon";
import InProgressIcon from "@patternfly/react-icons/dist/esm/icons/in-progress-icon";
import OutlinedCircleIcon from "@patternfly/react-icons/dist/esm/icons/outlined-circle-icon";
import PendingIcon from "@patternfly/react-icons/dist/esm/icons/pending-icon";
import RedoIcon from "@patternfly/react-icons/dist/esm/icons/redo-icon";
import TimesCircleIcon from "@patternfly/react-icons/dist/esm/icons/times-circle-icon";
import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { memo, type ReactNode } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { Td } from "../../components/tables/Td";
import { Wide } from "../bench/Wide";
import { type CellGrid, type Grids, type Planned, stateOf } from "./grid";

type Status = NonNullable<IconComponentProps["status"]>;

/** A shape for each state, so that colour is not needed to tell them apart. */
const LOOK: Record<Schemas["RunState"] | "planned", readonly [ReactNode, Status | null]> = {
  planned: [<OutlinedCircleIcon key="icon" />, null],
  queued: [<PendingIcon key="icon" />, null],
  running: [<InProgressIcon key="icon" />, "info"],
  completed: [<CheckCircleIcon key="icon" />, "success"],
  "ended as planned": [<CheckCircleIcon key="icon" />, "success"],
  "not converged": [<ExclamationTriangleIcon key="icon" />, "warning"],
  failed: [<TimesCircleIcon key="icon" />, "danger"],
  cancelled: [<BanIcon key="icon" />, null],
  interrupted: [<RedoIcon key="icon" />, null],
};
const NARROW = { paddingInline: "0.35rem", minWidth: "2rem" } as const;
const LEGEND = Object.keys(LOOK) as (keyof typeof LOOK)[];

/** Arms by blocks, and where the run of each stands. */
export function BlockGrid({ grids, ended }: { grids: Grids; ended: boolean }) {
  const several = grids.cells.length > 1;
  return (
    <>
      {grids.cells.map((grid) => (
        <CellTable
          key={grid.cell}
          grid={grid}
          title={several ? grid.cell : "Blocks"}
          ended={ended}
        />
      ))}
      {grids.warmUp.length > 0 && (
        <p>
          Warm-up (not counted):{" "}
          {grids.warmUp.map((run) => (
            <Mark
              key={run.number}
              run={run}
              label={`warm-up, ${run.arm}: ${stateOf(run, ended)}`}
            />
          ))}
        </p>
      )}
      <Legend ended={ended} />
    </>
  );
}

function CellTable({ grid, title, ended }: { grid: CellGrid; title: string; ended: boolean }) {
  const blocks = grid.rows[0]?.blocks ?? [];
  return (
    <Wide label={`${title}: arms by blocks`}>
      <Table
        aria-label={`${title}: arms by blocks`}
        variant="compact"
        borders={false}
        gridBreakPoint=""
      >
        <Thead>
          <Tr>
            <Th isStickyColumn stickyMinWidth="6rem">
              {title === "Blocks" ? "Block" : title}
            </Th>
            {blocks.map((_block, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a block is its number
              <Th key={index} textCenter style={NARROW}>
                {index + 1}
              </Th>
            ))}
          </Tr>
        </Thead>
        <Tbody>
          {grid.rows.map((row) => (
            <Tr key={row.arm}>
              <Th isStickyColumn stickyMinWidth="6rem" scope="row">
                {row.arm}
              </Th>
              {row.blocks.map((run, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a block is its number
                <Td key={index} textCenter style={NARROW}>
                  {run && (
                    <Mark
                      run={run}
                      label={`${row.arm}, block ${run.block}: ${stateOf(run, ended)}`}
                    />
                  )}
                </Td>
              ))}
            </Tr>
          ))}
        </Tbody>
      </Table>
    </Wide>
  );
}

const Mark = memo(function Mark({ run, label }: { run: Planned; label: string }) {
  const shown = <StateIcon state={run.state ?? "planned"} />;
  return run.run === null ? (
    <span role="img" aria-label={label} title={label}>
      {shown}
    </span>
  ) : (
    <Link to={`/bench/runs/${run.run}`} aria-label={label} title={label}>
      {shown}
    </Link>
  );
});

function StateIcon({ state }: { state: keyof typeof LOOK }) {
  const [icon, status] = LOOK[state];
  return <Icon {...(status ? { status } : {})}>{icon}</Icon>;
}

function Legend({ ended }: { ended: boolean }) {
  return (
    <p aria-hidden="true">
      {LEGEND.map((state) => (
        <span key={state} style={{ marginInlineEnd: "1rem", whiteSpace: "nowrap" }}>
          <StateIcon state={state} /> {state === "planned" && ended ? "not run" : state}
        </span>
      ))}
    </p>
  );
}

import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { RunLabel } from "../../components/labels/BenchLabels";
import { useOpenRow } from "../../components/tables/openRow";
import { Td } from "../../components/tables/Td";
import { moment, utc } from "../../components/text/format";
import { measure } from "../../components/text/measure";
import { Wide } from "./Wide";

const FEW = 2;

/** Runs, a row each, with the figures that people look at first. */
export function RunTable({
  runs,
  metrics,
}: {
  runs: readonly Schemas["RunView"][];
  metrics: readonly Schemas["MetricView"][];
}) {
  const opening = useOpenRow();
  const kinds = new Set(runs.map((each) => each.kind));
  const headline = metrics.filter((each) => each.headline && kinds.has(each.kind));
  const mixed = kinds.size > 1;
  const shown = mixed ? [] : headline;
  return (
    <Wide label="Runs">
      <Table aria-label="Runs" variant="compact" gridBreakPoint="grid-lg" className="vt-close">
        <Thead>
          <Tr>
            <Th>Created</Th>
            <Th>Scenario</Th>
            <Th modifier="nowrap">Arm or profile</Th>
            <Th>State</Th>
            {shown.map((each) => (
              <Th key={each.name} modifier="wrap">
                {each.title}
              </Th>
            ))}
            {mixed && <Th>Metrics</Th>}
          </Tr>
        </Thead>
        <Tbody>
          {runs.map((each) => (
            <Tr key={each.id} {...opening(`/bench/runs/${each.id}`)}>
              <Td dataLabel="Created" modifier="nowrap">
                <Link to={`/bench/runs/${each.id}`} title={utc(each.created_at)}>
                  {moment(each.created_at)}
                </Link>
              </Td>
              <Td dataLabel="Scenario">{each.scenario}</Td>
              <Td dataLabel="Arm or profile" modifier="nowrap">
                <WhatRan run={each} />
              </Td>
              <Td dataLabel="State">
                <RunLabel state={each.state} />
              </Td>
              {shown.map(({ name, title, unit }) => {
                const value = each.metrics[name];
                return (
                  <Td key={name} dataLabel={title} modifier="nowrap">
                    {value === undefined ? "–" : measure(value, unit)}
                  </Td>
                );
              })}
              {mixed && (
                <Td dataLabel="Metrics">
                  <Figures run={each} metrics={headline} />
                </Td>
              )}
            </Tr>
          ))}
        </Tbody>
      </Table>
    </Wide>
  );
}

/** The first few figures of a run, where runs of other kinds are beside it. */
function Figures({
  run,
  metrics,
}: {
  run: Schemas["RunView"];
  metrics: readonly Schemas["MetricView"][];
}) {
  const few = metrics.filter((each) => each.kind === run.kind).slice(0, FEW);
  return few.map(({ name, title, unit }) => {
    const value = run.metrics[name];
    return (
      <div key={name}>
        {title}: {value === undefined ? "–" : measure(value, unit)}
      </div>
    );
  });
}

/** The arm of a campaign, or the profile; what came from elsewhere says so. */
function WhatRan({ run }: { run: Schemas["RunView"] }) {
  const profile = run.profile ? `${run.profile} r${run.revision}` : "no profile";
  return (
    <>
      {run.slot ? (
        <Link to={`/bench/campaigns/${run.slot.campaign}`}>
          {run.slot.arm}, {run.slot.block === 0 ? "warm-up" : `block ${run.slot.block}`}
        </Link>
      ) : (
        profile
      )}
      {run.imported_from && ` (from ${run.imported_from})`}
    </>
  );
}

import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { bytes, duration } from "./format";
import { Moment } from "./Moment";
import { MigrationLabel } from "./StateLabel";

/** Migrations, a row each. */
export function MigrationTable({
  migrations,
  showVm = false,
}: {
  migrations: readonly Schemas["MigrationView"][];
  showVm?: boolean;
}) {
  return (
    <Table aria-label="Migrations" variant="compact">
      <Thead>
        <Tr>
          <Th>When</Th>
          {showVm && <Th>VM</Th>}
          <Th>From, to</Th>
          <Th>Profile</Th>
          <Th>State</Th>
          <Th>Total time</Th>
          <Th>Downtime</Th>
          <Th>Transferred</Th>
        </Tr>
      </Thead>
      <Tbody>
        {migrations.map((each) => (
          <Tr key={each.id}>
            <Td dataLabel="When">
              <Link to={`/migrations/${each.id}`}>
                <Moment at={each.created_at} />
              </Link>
            </Td>
            {showVm && (
              <Td dataLabel="VM">
                <Link to={`/vms/${each.vm}`}>{each.vm_name}</Link>
              </Td>
            )}
            <Td dataLabel="From, to">
              {each.source} to {each.destination}
            </Td>
            <Td dataLabel="Profile">{each.profile ?? "none"}</Td>
            <Td dataLabel="State">
              <MigrationLabel state={each.state} />
            </Td>
            <Td dataLabel="Total time">
              {each.totals ? duration(each.totals.total_time_ms) : "–"}
            </Td>
            <Td dataLabel="Downtime">{each.totals ? duration(each.totals.downtime_ms) : "–"}</Td>
            <Td dataLabel="Transferred">
              {each.totals ? bytes(each.totals.transferred_bytes) : "–"}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

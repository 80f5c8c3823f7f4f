import {
  Checkbox,
  List,
  ListItem,
  Progress,
  ProgressMeasureLocation,
} from "@patternfly/react-core";
import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { Labelled, type Look } from "../../components/labels/StateLabel";
import { plannedDisk } from "../../components/migration/copying";
import { useOpenRow } from "../../components/tables/openRow";
import { Td } from "../../components/tables/Td";
import { bytes } from "../../components/text/format";

type EvacuationVm = Schemas["EvacuationVmView"];

const VM_STATES: Record<Schemas["EvacuationVmState"], Look> = {
  waiting: undefined,
  requested: "info",
  moved: "success",
  failed: "danger",
  aborted: "warning",
  blocked: "danger",
  "not placed": "danger",
  "not running": undefined,
  "moved or stopped by others": "warning",
  "not started": "warning",
};

const STATES: Record<Schemas["EvacuationState"], Look> = {
  running: "info",
  paused: "warning",
  completed: "success",
  incomplete: "warning",
  failed: "danger",
  cancelled: undefined,
};

export function EvacuationLabel({ state }: { state: Schemas["EvacuationState"] }) {
  return <Labelled look={STATES[state]}>{state}</Labelled>;
}

/**
 * Where each VM goes, and what stands against it.
 *
 * @param planned nothing has begun: what waits would move.
 * @param shares of each VM that is under way, how far it is.
 * @param override lets a blocker of one VM be overridden; left out where it is too late for that.
 */
export function EvacuationVms({
  vms,
  planned = false,
  shares = {},
  override,
}: {
  vms: readonly EvacuationVm[];
  planned?: boolean;
  shares?: Readonly<Record<string, number>>;
  override?: (vm: string, code: string, on: boolean) => void;
}) {
  const opening = useOpenRow();
  return (
    <Table aria-label="VMs" variant="compact">
      <Thead>
        <Tr>
          <Th>VM</Th>
          <Th>Memory</Th>
          <Th>To</Th>
          <Th>State</Th>
          <Th>Progress or reason</Th>
        </Tr>
      </Thead>
      <Tbody>
        {vms.map((vm) => (
          <Tr key={vm.vm} {...opening(vm.migration ? `/migrations/${vm.migration}` : null)}>
            <Td dataLabel="VM">
              <Link to={`/vms/${vm.vm}`}>{vm.name}</Link>
            </Td>
            <Td dataLabel="Memory">{vm.memory_bytes ? bytes(vm.memory_bytes) : "–"}</Td>
            <Td dataLabel="To">
              {vm.destination ? (
                <Link to={`/hosts/${encodeURIComponent(vm.destination)}`}>{vm.destination}</Link>
              ) : (
                "–"
              )}
            </Td>
            <Td dataLabel="State">
              {planned && vm.state === "waiting" ? (
                <Labelled look="success">moves</Labelled>
              ) : (
                <Labelled look={VM_STATES[vm.state]}>
                  {wordOf(vm.state, shares[vm.vm] !== undefined)}
                </Labelled>
              )}
            </Td>
            <Td dataLabel="Progress or reason">
              {planned && <Copied disks={vm.disks} />}
              <Detail vm={vm} share={shares[vm.vm]} />
              {override &&
                [...vm.blockers, ...vm.overrides].map((code) => (
                  <Checkbox
                    key={code}
                    id={`override-${vm.vm}-${code}`}
                    label={`Override ${code}`}
                    aria-label={`Override ${code} of ${vm.name}`}
                    isChecked={vm.overrides.includes(code)}
                    onChange={(_event, on) => override(vm.vm, code, on)}
                  />
                ))}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

/** The local disks that are copied along. */
function Copied({ disks }: { disks: EvacuationVm["disks"] }) {
  if (disks.length === 0) return null;
  return (
    <List isPlain aria-label="Disks that are copied">
      {disks.map((disk) => (
        <ListItem key={disk.target}>copies {plannedDisk(disk)}</ListItem>
      ))}
    </List>
  );
}

/** What was requested migrates as soon as something is known of it. */
function wordOf(state: EvacuationVm["state"], answers: boolean): string {
  return state === "requested" && answers ? "migrating" : state;
}

function Detail({ vm, share }: { vm: EvacuationVm; share: number | undefined }) {
  if (vm.reason) return <>{vm.reason}</>;
  if (vm.migration === null) return null;
  // One that waits for its turn has no progress yet: its migration's page says what it waits for.
  if (vm.state !== "requested" || share === undefined)
    return <Link to={`/migrations/${vm.migration}`}>Migration</Link>;
  return (
    <Progress
      aria-label={`Progress of ${vm.name}`}
      title={<Link to={`/migrations/${vm.migration}`}>Migration</Link>}
      size="sm"
      value={Math.round(share * 100)}
      measureLocation={ProgressMeasureLocation.outside}
    />
  );
}

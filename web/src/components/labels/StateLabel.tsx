/** States as PatternFly labels: one colour and word for each, everywhere. */
import { Label, type LabelProps } from "@patternfly/react-core";
import type { Schemas } from "../../api/client";

const SHORT = 24;

export type Look = NonNullable<LabelProps["status"]> | undefined;

const MIGRATION: Record<Schemas["MigrationState"], Look> = {
  queued: undefined,
  preparing: "info",
  starting: "info",
  active: "info",
  "postcopy-paused": "danger",
  completed: "success",
  failed: "danger",
  cancelled: "warning",
  unknown: "warning",
};

export const MIGRATION_STATES = Object.keys(MIGRATION) as Schemas["MigrationState"][];

export function MigrationLabel({ state }: { state: Schemas["MigrationState"] }) {
  return <Labelled look={MIGRATION[state]}>{state}</Labelled>;
}

const STARTED_BY: Record<Schemas["Trigger"], string> = {
  vmtune: "vmtune",
  observed: "others",
};

/** Who began a migration: vmtune, or others, in which case it was only observed. */
export function startedBy(migration: { trigger: Schemas["Trigger"] }): string {
  return STARTED_BY[migration.trigger];
}

const VM: Record<Schemas["VmState"], Look> = {
  running: "success",
  paused: "warning",
  incoming: "info",
  "migrated away": undefined,
  "shut off": undefined,
  other: undefined,
  unknown: undefined,
};

export function VmLabel({ state }: { state: Schemas["VmState"] }) {
  return <Labelled look={VM[state]}>{state}</Labelled>;
}

const HOST: Record<Schemas["HostState"], Look> = {
  up: "success",
  unreachable: "danger",
  unknown: undefined,
};

export function HostLabel({ state }: { state: Schemas["HostState"] }) {
  return <Labelled look={HOST[state]}>{state}</Labelled>;
}

const STATUS: Record<Schemas["Status"], Look> = {
  effective: "success",
  "pending migration": "info",
  "pending restart": "info",
  "not applied": undefined,
  overwritten: "warning",
  rejected: "danger",
  reverted: "warning",
  unknown: "warning",
};

export function StatusLabel({ status }: { status: Schemas["Status"] }) {
  return <Labelled look={STATUS[status]}>{status}</Labelled>;
}

const APPLICATION: Record<Schemas["ApplicationState"], Look> = {
  intended: "info",
  applied: "success",
  failed: "danger",
  reverting: "info",
  reverted: undefined,
  unknown: "warning",
};

export function ApplicationLabel({ state }: { state: Schemas["ApplicationState"] }) {
  return <Labelled look={APPLICATION[state]}>{state}</Labelled>;
}

/** A short word stays on one line: in a table the text beside it breaks instead. */
export function Labelled({ look, children }: { look: Look; children: string }) {
  const className = children.length <= SHORT ? "vt-whole" : "";
  return look ? (
    <Label isCompact status={look} className={className}>
      {children}
    </Label>
  ) : (
    <Label isCompact className={className}>
      {children}
    </Label>
  );
}

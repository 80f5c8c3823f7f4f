/** Answers of the service for tests of pages about VMs and migrations. */
import type { Schemas } from "../api/client";
import type { Progress } from "../api/progress";

type Reading = Schemas["ReadingView"];

export function reading(text: string, part: Partial<Reading> = {}): Reading {
  return { value: 1, text, parts: {}, part_texts: {}, why_unknown: "", ...part };
}

export function outcome(
  tunable: string,
  status: Schemas["Status"],
  part: Partial<Schemas["OutcomeView"]> = {},
): Schemas["OutcomeView"] {
  return {
    tunable,
    status,
    wanted: { value: 700, text: "700 ms" },
    seen: { value: 700, text: "700 ms" },
    reason: "",
    owner: "",
    ...part,
  };
}

export function finding(
  severity: Schemas["Severity"],
  tunable: string | null,
  code = "some_code",
): Schemas["FindingView"] {
  return {
    code,
    severity,
    tunable,
    message: `${code} stands`,
    remedy: "mend it",
    evidence: {},
    overridable: severity === "blocker",
  };
}

export function plan(part: Partial<Schemas["PlanView"]> = {}): Schemas["PlanView"] {
  return {
    vm: "v",
    vm_name: "db1",
    host: "a",
    destination: null,
    connection: "libvirt",
    profile: "fast",
    revision: 3,
    clean: false,
    blockers: [],
    findings: [],
    items: [
      {
        tunable: "downtime_limit_ms",
        wanted: { value: 700, text: "700 ms" },
        current: reading("300 ms"),
        route: "monitor",
        side: "source",
        takes_effect: "now",
        overwriter: "",
        differs: true,
      },
      {
        tunable: "multifd",
        wanted: { value: true, text: "on" },
        current: reading("on"),
        route: "migrate",
        side: "both",
        takes_effect: "at the next migration",
        overwriter: "libvirt",
        differs: false,
      },
    ],
    steps: [],
    step_texts: [],
    disks: [],
    virsh: null,
    ...part,
  } as Schemas["PlanView"];
}

export function application(
  part: Partial<Schemas["ApplicationView"]> = {},
): Schemas["ApplicationView"] {
  return {
    id: "x",
    vm: "v",
    host: "a",
    profile: "fast",
    revision: 3,
    values: {},
    texts: {},
    state: "applied",
    best_effort: false,
    outcomes: [outcome("downtime_limit_ms", "effective")],
    problems: [],
    created_at: "2026-11-21T09:00:00Z",
    ended_at: "2026-11-21T09:00:01Z",
    ...part,
  };
}

export function progress(part: Partial<Progress> = {}): Progress {
  return {
    share: 0.4,
    at_ms: 1000,
    status: "active",
    iteration: 3,
    transferred_bytes: 1 << 20,
    remaining_bytes: 1 << 20,
    total_bytes: 4 << 20,
    dirty_bytes_per_s: 10 << 20,
    throughput_bytes_per_s: 20 << 20,
    throttle_percent: 0,
    expected_downtime_ms: null,
    outlook: null,
    ...part,
  };
}

/** A row of the list of VMs; its name is its UUID, too. */
export function vmRow(name: string, part: Partial<Schemas["VmView"]> = {}): Schemas["VmView"] {
  return {
    uuid: name,
    name,
    host: "a",
    state: "running",
    labels: {},
    tuning_state: "untuned",
    tuning: null,
    unreachable: null,
    migration: null,
    migration_state: null,
    ...part,
  };
}

/** A campaign as it is put together in the wizard, and as the service takes it. */
import type { ProblemItem, Schemas } from "../../api/client";

export const LOADS = {
  idle: "The machine is idle",
  busy: "Every CPU is busy",
  busy_pinned: "Every CPU is busy, with one pinned process each",
} as const;
export type Load = keyof typeof LOADS;

export interface DraftValue {
  tunable: string;
  value: string;
}

/** @property key tells arms apart while their names are typed. */
export interface DraftArm {
  key: number;
  name: string;
  profile: string;
  qemu: string;
  testbed: Schemas["Testbed"];
  values: readonly DraftValue[];
}

/** Numbers are kept as they are typed; the service says what is wrong with them. */
export interface Draft {
  name: string;
  title: string;
  scenario: string;
  quick: boolean;
  loads: readonly Load[];
  arms: readonly DraftArm[];
  blocks: string;
  seed: string;
  metric: string;
  margin: string;
  warmUps: string;
  reference: string;
}

const QUICK = ".quick";
const PRIMARY: Record<Schemas["ScenarioKind"], string> = {
  migration: "total_time_ms",
  block: "iops",
  boot: "boot_to_userspace_ms",
  srcu: "grace_period_us",
};

export function newArm(key: number, name = ""): DraftArm {
  return { key, name, profile: "", qemu: "", testbed: "direct", values: [] };
}

/** The metric that runs of *scenario* are judged by unless somebody chooses another. */
export function primaryOf(scenario: string): string {
  return PRIMARY[kindOf(scenario)];
}

/** What a shipped scenario measures: those of other kinds than migrations are called so. */
export function kindOf(scenario: string): Schemas["ScenarioKind"] {
  const family = scenario.split("/")[0];
  return family === "block" || family === "boot" || family === "srcu" ? family : "migration";
}

/** @param scenario its name; with ".quick" after it, in small. */
export function newDraft(scenario = ""): Draft {
  return {
    name: "",
    title: "",
    scenario: scenario.endsWith(QUICK) ? scenario.slice(0, -QUICK.length) : scenario,
    quick: scenario.endsWith(QUICK),
    loads: ["idle"],
    arms: [newArm(0, "stock"), newArm(1, "tuned")],
    blocks: "10",
    seed: "",
    metric: primaryOf(scenario),
    margin: "5",
    warmUps: "1",
    reference: "",
  };
}

/** The campaign's file, as JSON. What was not typed is left out, for the service's defaults. */
export function asDocument(draft: Draft): Record<string, unknown> {
  return {
    name: draft.name.trim(),
    ...(draft.title.trim() ? { title: draft.title.trim() } : {}),
    ...(draft.scenario ? { scenario: named(draft) } : {}),
    arms: draft.arms.map(asArm),
    ...(draft.loads.some((load) => load !== "idle")
      ? { cells: draft.loads.map((load) => ({ name: load, host_load: load })) }
      : {}),
    ...asNumber("blocks", draft.blocks),
    ...asNumber("seed", draft.seed),
    primary_metric: draft.metric,
    ...asNumber("margin_percent", draft.margin),
    ...asNumber("warmup_runs", draft.warmUps),
    ...(draft.reference ? { published: { reference: draft.reference } } : {}),
  };
}

/** Only migrations can be made small. */
function named({ scenario, quick }: Draft): string {
  return quick && kindOf(scenario) === "migration" ? scenario + QUICK : scenario;
}

function asArm(arm: DraftArm): Record<string, unknown> {
  const values = arm.values.filter((each) => each.tunable !== "");
  return {
    name: arm.name.trim(),
    ...(arm.profile ? { profile: arm.profile } : {}),
    ...(arm.qemu ? { qemu: arm.qemu } : {}),
    ...(arm.testbed === "direct" ? {} : { testbed: arm.testbed }),
    ...(values.length > 0
      ? { values: Object.fromEntries(values.map(({ tunable, value }) => [tunable, value.trim()])) }
      : {}),
  };
}

/** What is no number is handed on as it is: the service refuses it in its own words. */
function asNumber(name: string, typed: string): Record<string, unknown> {
  const text = typed.trim();
  if (text === "") return {};
  const number = Number(text);
  return { [name]: Number.isFinite(number) ? number : text };
}

export type StepId = "what" | "arms" | "measure" | "review";

const STEP_OF: Record<string, StepId> = {
  name: "what",
  title: "what",
  scenario: "what",
  cells: "what",
  published: "what",
  arms: "arms",
  blocks: "measure",
  seed: "measure",
  primary_metric: "measure",
  margin_percent: "measure",
  warmup_runs: "measure",
};

/** The step on which a problem can be corrected; the last one where it is about none of them. */
export function stepOf(problem: Pick<ProblemItem, "field">): StepId {
  return STEP_OF[problem.field.split(".")[0] ?? ""] ?? "review";
}

/** The problems of *field* and of what is within it. */
export function problemsOf(problems: readonly ProblemItem[], field: string): ProblemItem[] {
  return problems.filter((each) => each.field === field || each.field.startsWith(`${field}.`));
}

/** What has to be filled in before the service can be asked at all. */
export function lacking(draft: Draft): ProblemItem[] {
  const missing = (field: string, message: string): ProblemItem => ({
    field,
    code: "missing",
    message,
    remedy: "",
  });
  return [
    ...(draft.name.trim() ? [] : [missing("name", "The campaign needs a name")]),
    ...(draft.scenario ? [] : [missing("scenario", "Choose a scenario")]),
    ...(draft.loads.length > 0 ? [] : [missing("cells", "Choose at least one")]),
    ...draft.arms.flatMap((arm, index) => [
      ...(arm.name.trim() ? [] : [missing(`arms.${index}.name`, "The arm needs a name")]),
      ...arm.values.flatMap(({ tunable, value }) =>
        tunable !== "" && value.trim() === ""
          ? [missing(`arms.${index}.values.${tunable}`, `Give a value for ${tunable}`)]
          : [],
      ),
      ...repeated(arm.values.map((each) => each.tunable)).map((tunable) =>
        missing(`arms.${index}.values.${tunable}`, `${tunable} is set twice`),
      ),
    ]),
  ];
}

/** Nothing but their names tells the arms apart: what differs between them is noise. */
export function sameArms(draft: Draft): boolean {
  const told = draft.arms.map((arm) => JSON.stringify({ ...asArm(arm), name: "" }));
  return new Set(told).size === 1;
}

function repeated(names: readonly string[]): string[] {
  return [...new Set(names.filter((name, index) => name !== "" && names.indexOf(name) < index))];
}

/** Convergence steps as they are edited, and as the service takes them. */
import type { Schemas } from "../../api/client";

type StepView = Schemas["StepView"];

export const TRIGGERS = {
  after_iterations: { label: "after iterations", unit: "iterations" },
  after_s: { label: "after", unit: "s" },
  later_s: { label: "later than the step before by", unit: "s" },
  stalled_s: { label: "when stalled for", unit: "s" },
} as const;

/**
 * @property shrink_percent of a stalled trigger: kept as it was, likewise near_percent.
 * @property more values that are set beside the edited one: kept as they were.
 */
export interface EditedStep {
  trigger: keyof typeof TRIGGERS;
  amount: number;
  action: "set" | "pause" | "postcopy" | "abort";
  tunable: string;
  value: string;
  shrink_percent?: number;
  near_percent?: number;
  more?: Record<string, unknown>;
}

const ACTIONS = ["pause", "postcopy", "abort"] as const;

export function edited(step: StepView): EditedStep {
  const trigger =
    (Object.keys(TRIGGERS) as EditedStep["trigger"][]).find((key) => key in step.when) ??
    "after_iterations";
  const { shrink_percent: shrink, near_percent: near } = step.when;
  const kept = {
    trigger,
    amount: step.when[trigger] ?? 0,
    ...(shrink === undefined ? {} : { shrink_percent: shrink }),
    ...(near === undefined ? {} : { near_percent: near }),
  };
  const done = ACTIONS.find((action) => action === step.then.do);
  if (done !== undefined) return { ...kept, action: done, tunable: "", value: "" };
  const [first, ...rest] = Object.entries((step.then.set ?? {}) as Record<string, unknown>);
  return {
    ...kept,
    action: "set",
    tunable: first?.[0] ?? "",
    value: first === undefined ? "" : String(first[1]),
    ...(rest.length > 0 ? { more: Object.fromEntries(rest) } : {}),
  };
}

export function asStep(step: EditedStep): StepView {
  const when: StepView["when"] = { [step.trigger]: step.amount };
  if (step.trigger === "stalled_s") {
    if (step.shrink_percent !== undefined) when.shrink_percent = step.shrink_percent;
    if (step.near_percent !== undefined) when.near_percent = step.near_percent;
  }
  const then =
    step.action === "set"
      ? { set: { [step.tunable]: step.value, ...step.more } }
      : { do: step.action };
  return { when, then };
}

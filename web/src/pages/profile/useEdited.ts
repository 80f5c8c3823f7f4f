/** A profile as it is edited: what was typed, what the service says of it, and how it is saved. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { applyTo, checkValues, createProfile, planVm, replaceProfile } from "../../api/actions";
import { ApiError, type Schemas } from "../../api/client";
import type { VmRow } from "../../api/tuning";
import { useToasts } from "../../components/dialogs/toasts";
import { stated, typedOf } from "../../components/forms/intent";
import { useSettled } from "../../components/forms/settled";
import { asWanted } from "../vm/asWanted";
import { asStep, edited } from "./steps";
import type { Trial } from "./TryOnVm";
import { asTyped, changed, type Source, type Typed } from "./typed";

type Profile = Schemas["ProfileView"];

const QUIET_MS = 250; // what is being typed asks the service nothing yet
const NOTHING: Source = { name: "", description: "", values: {}, texts: {}, steps: [] };

export function useEdited(
  old: Profile | null,
  begun: Source | null,
  saved: (name: string, vm: string | null) => unknown,
) {
  const [based] = useState(old); // what is edited does not change under the editor
  const first = based ?? begun ?? NOTHING;
  const [name, setName] = useState(begun ? `${begun.name}-copy` : "");
  const [description, setDescription] = useState(first.description);
  const [note, setNote] = useState("");
  const [values, setValues] = useState<Typed>(() => asTyped(first));
  const [steps, setSteps] = useState(() => first.steps.map(edited));
  const [intent, setIntent] = useState(() => typedOf(first.intent?.stated ?? null));
  const [trial, setTrial] = useState<Trial>({ vm: null, destination: "" });
  const [from, setFrom] = useState({ values, steps });
  const toasts = useToasts();
  const queries = useQueryClient();

  const typed = useMemo(() => ({ values, steps: steps.map(asStep) }), [values, steps]);
  const goals = useMemo(() => stated(intent), [intent]);
  const settled = useSettled(typed, QUIET_MS);
  const settledGoals = useSettled(goals, QUIET_MS);
  const check = useQuery({
    queryKey: ["check", settled, settledGoals],
    queryFn: () => checkValues(settled.values, settled.steps, settledGoals),
    retry: false,
    placeholderData: keepPreviousData,
  });
  // What nobody could judge may be right: saving it tells that nobody answers.
  const refused = check.error !== null && !(check.error instanceof ApiError && check.error.lost);
  const vm = trial.vm?.uuid ?? "";
  const destination = trial.destination ? { destination: trial.destination } : {};
  const plan = useQuery({
    queryKey: ["vm", "plan", vm, { ...settled, ...destination }],
    queryFn: () => planVm(vm, { ...settled, ...destination, without_profile: true }),
    enabled: vm !== "" && !refused,
    retry: false,
  });
  const save = useMutation({
    mutationFn: async (to: VmRow | null) => {
      const what = { ...typed, intent: goals && { ...goals }, description, note };
      const stored =
        based === null
          ? await createProfile({ name, ...what })
          : await replaceProfile(based.name, based.revision, what);
      return { stored, to };
    },
    onSuccess: async ({ stored, to }) => {
      queries.setQueryData(["profile", "one", stored.name], stored);
      toasts.done(`${stored.name} is saved`, `Revision ${stored.revision}`);
      if (to) await apply(stored.name, to);
      return saved(stored.name, to?.uuid ?? null);
    },
  });
  const apply = async (profile: string, to: VmRow) => {
    try {
      const done = await applyTo(to.uuid, { profile });
      if (asWanted(done)) return toasts.done(`${profile} was applied to ${to.name}`);
      const why = done.problems[0]?.message ?? "not all values are effective";
      return toasts.failed(`${profile} was not applied to ${to.name} as wanted`, new Error(why));
    } catch (error) {
      return toasts.failed(`${profile} is saved, and was not applied to ${to.name}`, error);
    }
  };
  const problems = [check.error, save.error].flatMap((error) =>
    error instanceof ApiError ? error.problems : [],
  );
  /** Takes the values and steps of *source*; a name that was typed stays. */
  const begin = (source: Source, called: string) => {
    const next = { values: asTyped(source), steps: source.steps.map(edited) };
    setValues(next.values);
    setSteps(next.steps);
    setIntent(typedOf(source.intent?.stated ?? null));
    setFrom(next);
    setDescription(source.description);
    setName((before) => (before === "" || before === autoName ? called : before));
    setAutoName(called);
  };
  const [autoName, setAutoName] = useState("");
  return {
    based,
    name,
    setName,
    description,
    setDescription,
    note,
    setNote,
    values,
    steps,
    setSteps,
    intent,
    setIntent,
    trial,
    setTrial,
    check,
    notes: check.error ? [] : (check.data?.notes ?? []),
    plan,
    save,
    problems,
    refused,
    begin,
    /** Nothing was changed since it began. */
    untouched: values === from.values && steps === from.steps,
    /** Whether the VM can have it as it is. */
    appliable: plan.data !== undefined && plan.data.blockers.length === 0 && !plan.isFetching,
    change: (tunable: string, value: string | undefined) =>
      setValues((before) => changed(before, tunable, value)),
    titleOf: (tunable: string | null, tunables: readonly Schemas["TunableView"][]) =>
      tunables.find((each) => each.name === tunable)?.title ?? "The plan",
  };
}

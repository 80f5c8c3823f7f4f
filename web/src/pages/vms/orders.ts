/** What can be done to many VMs at once, and how each of them is asked for it. */
import {
  addAssignment,
  applyTo,
  removeAssignment,
  startMigration,
  verifyVm,
} from "../../api/actions";
import { ApiError, type Schemas } from "../../api/client";
import { explainVm, setLabels, type VmRow } from "../../api/tuning";
import { inWords } from "../../components/dialogs/toasts";
import type { Stated } from "../../components/forms/intent";
import { isFine } from "../vm/asWanted";
import type { Done } from "./bulk";
import type { LabelChanges } from "./labels";

export type Order =
  /** *profile* is empty for what each was compared with, or else its assigned one. */
  | { kind: "apply"; profile: string; bestEffort: boolean }
  | { kind: "verify" }
  | { kind: "label"; changes: LabelChanges }
  /** *intent* is null for what the VM's own assignment has. */
  | { kind: "assign"; profile: string; intent: Stated | null }
  /** *profile* is empty for the assigned one. */
  | { kind: "migrate"; destination: string; profile: string; intent: Stated | null };

export type Kind = Order["kind"];

const PRESENT: readonly Schemas["VmState"][] = ["running", "paused"];
const NEEDS_QEMU: readonly Kind[] = ["apply", "verify", "migrate"];

/** What does *order* to one VM. It never throws: what went wrong is its result. */
export function workOf(order: Order): (vm: VmRow) => Promise<Done> {
  return async (vm) => {
    if (NEEDS_QEMU.includes(order.kind) && !PRESENT.includes(vm.state)) {
      return {
        verdict: "skipped",
        text: `it is ${vm.state === "unknown" ? "unreachable" : vm.state}`,
      };
    }
    try {
      return await done(order, vm);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.lost) return { verdict: "unknown", text: error.message };
      if (error.code === "no_profile")
        return { verdict: "skipped", text: "no profile is assigned" };
      // Nothing is wanted of it: neither applied nor assigned.
      if (order.kind === "verify" && error.status === 404) {
        return { verdict: "skipped", text: error.message };
      }
      return { verdict: "failed", text: inWords(error) };
    }
  };
}

function done(order: Order, vm: VmRow): Promise<Done> {
  switch (order.kind) {
    case "apply":
      return apply(order, vm);
    case "verify":
      return verify(vm);
    case "label":
      return label(order.changes, vm);
    case "assign":
      return assign(order, vm);
    case "migrate":
      return migrate(order, vm);
  }
}

/** What is asked of the service: a VM with a profile gets the same again. */
export function wanted(profile: string, vm: VmRow): { profile?: string; revision?: number } {
  if (profile) return { profile };
  return vm.tuning ? { profile: vm.tuning.profile, revision: vm.tuning.revision } : {};
}

async function apply(order: Order & { kind: "apply" }, vm: VmRow): Promise<Done> {
  const record = await applyTo(vm.uuid, {
    ...wanted(order.profile, vm),
    best_effort: order.bestEffort,
  });
  const to = `/vms/${vm.uuid}`;
  if (record.state === "unknown") return { verdict: "unknown", text: "host does not answer", to };
  if (record.state !== "applied") {
    const why = record.problems.map((each) => each.message).join("; ");
    return { verdict: "failed", text: why || record.state, to };
  }
  return differing(record.outcomes, `${record.profile} r${record.revision}`, to);
}

async function verify(vm: VmRow): Promise<Done> {
  const found = await verifyVm(vm.uuid);
  return differing(found.outcomes, `${found.profile} r${found.revision}`, `/vms/${vm.uuid}`);
}

function differing(outcomes: readonly Schemas["OutcomeView"][], fine: string, to: string): Done {
  const wrong = outcomes.filter((each) => !isFine(each));
  if (wrong.length === 0) return { verdict: "done", text: fine, to };
  const text = wrong.map((each) => `${each.tunable} ${each.status}`).join(", ");
  return { verdict: "differs", text, to };
}

async function label(changes: LabelChanges, vm: VmRow): Promise<Done> {
  const kept = Object.entries({ ...vm.labels, ...changes }).filter(
    (each): each is [string, string] => each[1] !== null,
  );
  const stored = await setLabels(vm.uuid, Object.fromEntries(kept));
  const text = Object.entries(stored.labels).map(([key, value]) => `${key}=${value}`);
  return { verdict: "done", text: text.join(" ") || "no labels" };
}

/** Its own assignment, instead of the one that it had. It keeps that one's intent, unless another is
 * stated. */
async function assign(order: Order & { kind: "assign" }, vm: VmRow): Promise<Done> {
  const { candidates } = await explainVm(vm.uuid);
  const old = candidates.find((each) => each.target === "vm");
  if (old?.profile === order.profile && order.intent === null) {
    return { verdict: "skipped", text: "already assigned" };
  }
  const add = (profile: string, intent: Stated | null) =>
    addAssignment({
      target: "vm",
      key: vm.uuid,
      profile,
      ...(intent ? { intent: { ...intent } } : {}),
    });
  const kept = old?.intent?.stated ?? null;
  if (old) await removeAssignment(old.id);
  try {
    await add(order.profile, order.intent ?? kept);
  } catch (error) {
    if (old) await add(old.profile, kept); // it has lost nothing
    throw error;
  }
  const text = old ? `instead of ${old.profile}` : order.profile;
  const keeps = kept && order.intent === null ? ", with its intent" : "";
  return { verdict: "done", text: `${text}${keeps}` };
}

async function migrate(order: Order & { kind: "migrate" }, vm: VmRow): Promise<Done> {
  if (vm.host === order.destination) return { verdict: "skipped", text: "already on that host" };
  if (vm.migration) {
    return { verdict: "skipped", text: "already migrating", to: `/migrations/${vm.migration}` };
  }
  const { destination, profile, intent } = order;
  const begun = await startMigration({
    vm: vm.uuid,
    destination,
    ...(profile ? { profile } : {}),
    ...(intent ? { intent: { ...intent } } : {}),
  });
  return { verdict: "done", text: `to ${destination}`, to: `/migrations/${begun.id}` };
}

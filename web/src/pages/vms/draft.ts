/** What was typed of an order to many VMs, before it is one. */
import { NO_INTENT, stated, type TypedIntent } from "../../components/forms/intent";
import { labelChanges } from "./labels";
import type { Kind, Order } from "./orders";

export interface Draft {
  profile: string;
  bestEffort: boolean;
  labels: string;
  destination: string;
  intent: TypedIntent;
  most: number;
  stopAfter: number;
}

export const draft: Draft = {
  profile: "",
  bestEffort: false,
  labels: "",
  destination: "",
  intent: NO_INTENT,
  most: 50,
  stopAfter: 3,
};

/** Null while something is missing. */
export function orderOf(kind: Kind, typed: Draft): Order | null {
  if (!(typed.most >= 1 && typed.stopAfter >= 1)) return null;
  switch (kind) {
    case "apply":
      return { kind, profile: typed.profile, bestEffort: typed.bestEffort };
    case "verify":
      return { kind };
    case "label": {
      const { changes, faults } = labelChanges(typed.labels);
      return faults.length > 0 || Object.keys(changes).length === 0 ? null : { kind, changes };
    }
    case "assign":
      return typed.profile ? { kind, profile: typed.profile, intent: stated(typed.intent) } : null;
    case "migrate":
      return typed.destination
        ? {
            kind,
            destination: typed.destination,
            profile: typed.profile,
            intent: stated(typed.intent),
          }
        : null;
  }
}

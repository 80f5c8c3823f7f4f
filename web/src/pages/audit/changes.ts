/** What an audit entry's changes were, field by field. */
import type { Schemas } from "../../api/client";

export interface FieldChange {
  field: string;
  before: string | null;
  after: string | null;
}

/** Null stands for what was not there: the thing was made, or deleted. */
export function fieldChanges(change: Schemas["ChangeView"]): FieldChange[] {
  const { before, after } = change;
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return fields.map((field) => ({
    field,
    before: before === null ? null : asText(before[field]),
    after: after === null ? null : asText(after[field]),
  }));
}

/** What was done to the thing, in a word. */
export function deed(change: Schemas["ChangeView"]): "made" | "deleted" | "changed" {
  if (change.before === null) return "made";
  return change.after === null ? "deleted" : "changed";
}

function asText(value: unknown): string {
  if (value === null || value === undefined) return "none";
  return typeof value === "string" ? value || "empty" : JSON.stringify(value);
}

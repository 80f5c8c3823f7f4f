/** A token as it is typed, and as the service takes it. */
import type { Schemas } from "../../api/client";

export interface TypedToken {
  name: string;
  scopes: readonly string[];
  /** Names with commas; empty for all hosts. */
  hosts: string;
  /** As in tier=db,zone=a; empty for all VMs. */
  selector: string;
  /** As the browser's field for a day gives it: 2026-12-31; empty for never. */
  lastDay: string;
}

/** It ends with its last day, in the reader's own zone. */
export function asToken(typed: TypedToken): Schemas["TokenCreate"] {
  const hosts = listed(typed.hosts);
  return {
    name: typed.name.trim(),
    scopes: [...typed.scopes],
    hosts: hosts.length > 0 ? hosts : null,
    selector: Object.fromEntries(
      listed(typed.selector).map((pair) => {
        const [key = "", ...value] = pair.split("=");
        return [key.trim(), value.join("=").trim()];
      }),
    ),
    expires_at: typed.lastDay ? new Date(`${typed.lastDay}T23:59:59`).toISOString() : null,
  };
}

function listed(text: string): string[] {
  return text
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);
}

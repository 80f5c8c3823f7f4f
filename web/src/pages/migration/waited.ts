import type { Schemas } from "../../api/client";
import type { Fact } from "../../components/layout/Facts";
import { count, duration } from "../../components/text/format";

/** How long the guest waited for pages that were still on the source, after it had switched over. */
export function waited(postcopy: Schemas["PostcopyView"] | null): Fact[] {
  if (postcopy === null) return [];
  const slowest = postcopy.latency_p99_at_most_us;
  return [
    ["Guest stood still for pages", duration(postcopy.blocked_ms)],
    ["Each vCPU waited", postcopy.vcpu_blocked_ms.map((each) => duration(each)).join(", ")],
    ...(slowest === null ? [] : [["99 % of pages within", `${count(slowest)} µs`] as Fact]),
  ];
}

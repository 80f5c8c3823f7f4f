/** What a preflight found: blockers first, each with its evidence and remedy. */
import { Stack, StackItem } from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { bytes, sentence } from "../text/format";
import { Said } from "../text/Said";
import { Alert } from "./Alert";
import { FactList } from "./Facts";

type Finding = Schemas["FindingView"];

export const FINDING_LOOK: Record<Finding["severity"], "danger" | "warning" | "info"> = {
  blocker: "danger",
  warning: "warning",
  info: "info",
};
const ORDER: readonly Finding["severity"][] = ["blocker", "warning", "info"];

/** The worst first. */
export function inOrder(findings: readonly Finding[]): Finding[] {
  return [...findings].sort(
    (one, two) => ORDER.indexOf(one.severity) - ORDER.indexOf(two.severity),
  );
}

export function Findings({ findings }: { findings: readonly Finding[] }) {
  return (
    <Stack hasGutter>
      {inOrder(findings).map((finding) => (
        <StackItem key={`${finding.code} ${finding.tunable} ${finding.message}`}>
          <Alert
            isInline
            variant={FINDING_LOOK[finding.severity]}
            title={<Said>{sentence(finding.message)}</Said>}
          >
            {finding.remedy && (
              <p>
                <Said>{sentence(finding.remedy)}</Said>
              </p>
            )}
            <Evidence evidence={finding.evidence} />
          </Alert>
        </StackItem>
      ))}
    </Stack>
  );
}

function Evidence({ evidence }: { evidence: Finding["evidence"] }) {
  const facts = Object.entries(evidence);
  if (facts.length === 0) return null;
  return (
    <div style={{ marginBlockStart: "var(--pf-t--global--spacer--sm)" }}>
      <FactList
        facts={facts.map(([name, value]) => [
          sentence(
            name
              .replace(/_bytes$/, "")
              .replaceAll("_", " ")
              .replace(/\bcpus\b/, "CPUs"),
          ),
          name.endsWith("_bytes") && typeof value === "number" ? bytes(value) : String(value),
        ])}
      />
    </div>
  );
}

/** What a preflight found: blockers first, each with its evidence and remedy. */
import {
  Alert,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import type { Schemas } from "../api/client";
import { bytes } from "./format";

type Finding = Schemas["FindingView"];

const LOOK: Record<Finding["severity"], "danger" | "warning" | "info"> = {
  blocker: "danger",
  warning: "warning",
  info: "info",
};
const ORDER: readonly Finding["severity"][] = ["blocker", "warning", "info"];

export function Findings({ findings }: { findings: readonly Finding[] }) {
  const sorted = [...findings].sort(
    (one, two) => ORDER.indexOf(one.severity) - ORDER.indexOf(two.severity),
  );
  return (
    <Stack hasGutter>
      {sorted.map((finding) => (
        <StackItem key={`${finding.code} ${finding.tunable} ${finding.message}`}>
          <Alert isInline variant={LOOK[finding.severity]} title={finding.message}>
            {finding.remedy && <p>{finding.remedy}</p>}
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
    <DescriptionList isHorizontal isCompact isFluid>
      {facts.map(([name, value]) => (
        <DescriptionListGroup key={name}>
          <DescriptionListTerm>
            {name.replace(/_bytes$/, "").replaceAll("_", " ")}
          </DescriptionListTerm>
          <DescriptionListDescription>
            {name.endsWith("_bytes") && typeof value === "number" ? bytes(value) : String(value)}
          </DescriptionListDescription>
        </DescriptionListGroup>
      ))}
    </DescriptionList>
  );
}

import { ExpandableSection } from "@patternfly/react-core";
import { useState } from "react";
import type { ProblemItem } from "../../api/client";
import { IntentFields } from "../forms/IntentFields";
import { goalNames, type TypedIntent } from "../forms/intent";

/** The fields of an intent, which most do without: folded until they are wanted. */
export function IntentSection(props: {
  id: string;
  typed: TypedIntent;
  change: (typed: TypedIntent) => void;
  problems?: readonly ProblemItem[];
}) {
  const typed = goalNames.some((goal) => props.typed.goals[goal]);
  const [open, setOpen] = useState(typed);
  return (
    <ExpandableSection
      toggleText="By intent: say what it may cost"
      isExpanded={open || typed}
      onToggle={(_event, on) => setOpen(on)}
    >
      {(open || typed) && <IntentFields {...props} />}
    </ExpandableSection>
  );
}

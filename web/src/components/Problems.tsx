import { Alert } from "@patternfly/react-core";
import type { ProblemItem } from "../api/client";

/** What went wrong beside an answer that came all the same. */
export function Problems({ problems }: { problems: readonly ProblemItem[] }) {
  return (
    <>
      {problems.map((problem) => (
        <Alert
          key={`${problem.field} ${problem.code} ${problem.message}`}
          isInline
          variant="warning"
          title={`${problem.field}: ${problem.message}`}
        >
          {problem.remedy}
        </Alert>
      ))}
    </>
  );
}

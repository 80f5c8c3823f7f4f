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
          title={said(problem)}
        >
          {problem.remedy}
        </Alert>
      ))}
    </>
  );
}

const HOST = "hosts.";

function said({ field, message }: ProblemItem): string {
  if (field === "") return message;
  return `${field.startsWith(HOST) ? `Host ${field.slice(HOST.length)}` : field}: ${message}`;
}

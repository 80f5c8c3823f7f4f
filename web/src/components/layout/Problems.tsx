import type { ProblemItem } from "../../api/client";
import { sentence } from "../text/format";
import { Said } from "../text/Said";
import { Alert } from "./Alert";

/** What went wrong beside an answer that came all the same. */
export function Problems({ problems }: { problems: readonly ProblemItem[] }) {
  return (
    <>
      {problems.map((problem) => (
        <Alert
          key={`${problem.field} ${problem.code} ${problem.message}`}
          isInline
          variant="warning"
          title={<Said>{said(problem)}</Said>}
        >
          <Said>{sentence(problem.remedy)}</Said>
        </Alert>
      ))}
    </>
  );
}

const HOST = "hosts.";
const OWN = "uri"; // of the host that the page is about

function said({ field, message }: ProblemItem): string {
  if (field === "" || field === OWN) return sentence(message);
  return `${field.startsWith(HOST) ? `Host ${field.slice(HOST.length)}` : field}: ${message}`;
}

import { Button, Icon } from "@patternfly/react-core";
import { ExclamationCircleIcon } from "@patternfly/react-icons/dist/esm/icons/exclamation-circle-icon";
import { counted } from "../../components/text/format";

/** Something that is wrong, and the tunable to look at; null where it is none. */
export interface Fault {
  title: string;
  text: string;
  tunable: string | null;
}

const MOST = 4;

/** What is wrong, in a line, with a way to each. */
export function Wrong({
  faults,
  lead,
}: {
  faults: readonly Fault[];
  lead: (tunable: string) => void;
}) {
  if (faults.length === 0) return null;
  return (
    <section aria-label="What is wrong">
      <Icon status="danger" isInline>
        <ExclamationCircleIcon />
      </Icon>{" "}
      {counted(faults.length, "problem")}:{" "}
      {faults.slice(0, MOST).map(({ title, text, tunable }, place) => (
        <span key={`${title} ${text}`}>
          {place > 0 && ", "}
          {tunable === null ? (
            <>
              {title} ({text})
            </>
          ) : (
            <Button variant="link" isInline title={text} onClick={() => lead(tunable)}>
              {title}
            </Button>
          )}
        </span>
      ))}
      {faults.length > MOST && `, and ${faults.length - MOST} more`}
    </section>
  );
}

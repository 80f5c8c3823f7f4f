import { Button, Label } from "@patternfly/react-core";
import { Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { useState } from "react";
import { Link } from "react-router";
import type { SetupHistory } from "../../api/trends";
import { Moment } from "../../components/labels/Moment";
import { Td } from "../../components/tables/Td";
import { TriageDialog } from "./TriageDialog";

type Shift = NonNullable<SetupHistory["changes"]>[number];

export const TRIAGE_TEXTS = {
  open: "not triaged",
  known: "known",
  accepted: "accepted",
  to_fix: "to fix",
} as const;

/** The changes of one setup: what, since when, what else changed near it, and what was decided. */
export function ChangeTable({ label, changes }: { label: string; changes: readonly Shift[] }) {
  const [triaged, setTriaged] = useState<string | null>(null);
  const found = changes.find((each) => each.found?.id === triaged)?.found;
  return (
    <>
      <Table aria-label={label} variant="compact" gridBreakPoint="grid-lg">
        <Thead>
          <Tr>
            <Th>Since</Th>
            <Th>Change</Th>
            <Th>Kind</Th>
            <Th>Environment near it</Th>
            <Th>Triage</Th>
            <Th screenReaderText="Actions" />
          </Tr>
        </Thead>
        <Tbody>
          {changes.map((each) => (
            <Tr key={`${each.run} ${each.kind}`}>
              <Td dataLabel="Since">
                <Link to={`/bench/runs/${each.run}`}>
                  <Moment at={each.since} />
                </Link>
              </Td>
              <Td dataLabel="Change">
                {each.worse ? <Label color="red">worse</Label> : null} {each.text}
              </Td>
              <Td dataLabel="Kind">{each.kind}</Td>
              <Td dataLabel="Environment near it">{cause(each)}</Td>
              <Td dataLabel="Triage">
                {each.found ? TRIAGE_TEXTS[each.found.triage] : "not kept yet"}
                {each.found?.note ? `: ${each.found.note}` : ""}
              </Td>
              <Td isActionCell>
                {each.found && (
                  <Button
                    variant="secondary"
                    size="sm"
                    aria-label={`Triage the change of run ${each.at + 1}`}
                    onClick={() => setTriaged(each.found?.id ?? null)}
                  >
                    Triage
                  </Button>
                )}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      {found && <TriageDialog change={found} close={() => setTriaged(null)} />}
    </>
  );
}

/** What became another near a change, and how many runs from it. */
export function cause(change: Shift): string {
  if (change.environment.length === 0) return "no change within 5 runs";
  const after = change.environment_after;
  const runs = Math.abs(after) === 1 ? "1 run" : `${Math.abs(after)} runs`;
  const where = after === 0 ? "" : ` (${runs} ${after > 0 ? "later" : "earlier"})`;
  return change.environment.join("; ") + where;
}

import { Button, Card, CardBody, CardTitle } from "@patternfly/react-core";
import { ExpandableRowContent, Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { restoreRevision } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { revisions } from "../../api/queries";
import { useToasts } from "../../components/dialogs/toasts";
import { Moment } from "../../components/labels/Moment";
import { Async } from "../../components/layout/Async";
import { More } from "../../components/tables/More";
import { Td } from "../../components/tables/Td";
import { difference } from "./difference";

/** Every revision with what it changed, and the way back to it. */
export function Revisions({ name, current }: { name: string; current: number }) {
  const list = useInfiniteQuery(revisions(name));
  const toasts = useToasts();
  const restore = useMutation({
    mutationFn: (number: number) => restoreRevision(name, current, number),
    onSuccess: (done, number) =>
      toasts.done(`Restored revision ${number}`, `It is now revision ${done.revision}.`),
    onError: (error, number) => toasts.failed(`Revision ${number} was not restored`, error),
  });
  return (
    <Card>
      <CardTitle component="h2">Revisions</CardTitle>
      <CardBody>
        <Async query={list}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            return (
              <Table aria-label="Revisions" variant="compact">
                <Thead>
                  <Tr>
                    <Th screenReaderText="What changed" />
                    <Th>Revision</Th>
                    <Th>Created</Th>
                    <Th>Note</Th>
                    <Th screenReaderText="Actions" />
                  </Tr>
                </Thead>
                {items.map((each, index) => (
                  <RevisionRow
                    key={each.revision}
                    revision={each}
                    before={items[index + 1]}
                    index={index}
                    restore={each.revision === current ? null : () => restore.mutate(each.revision)}
                  />
                ))}
              </Table>
            );
          }}
        </Async>
        <More list={list} />
      </CardBody>
    </Card>
  );
}

/** Beside the values, under a name that no tunable has. */
function intentOf(revision: Schemas["RevisionView"] | undefined): Record<string, string> {
  return revision?.intent ? { intent: revision.intent.text } : {};
}

function RevisionRow({
  revision,
  before,
  index,
  restore,
}: {
  revision: Schemas["RevisionView"];
  before: Schemas["RevisionView"] | undefined;
  index: number;
  restore: (() => void) | null;
}) {
  const [open, setOpen] = useState(false);
  const changes = difference(
    { ...before?.texts, ...intentOf(before) },
    { ...revision.texts, ...intentOf(revision) },
  );
  return (
    <Tbody isExpanded={open}>
      <Tr>
        <Td expand={{ rowIndex: index, isExpanded: open, onToggle: () => setOpen(!open) }} />
        <Td dataLabel="Revision">{revision.revision}</Td>
        <Td dataLabel="Created">
          <Moment at={revision.created_at} />
        </Td>
        <Td dataLabel="Note">{revision.note || "–"}</Td>
        <Td isActionCell>
          {restore && (
            <Button variant="link" size="sm" onClick={restore}>
              Restore
            </Button>
          )}
        </Td>
      </Tr>
      <Tr isExpanded={open}>
        <Td colSpan={5}>
          <ExpandableRowContent>
            {changes.length === 0 ? (
              "No changes."
            ) : (
              <ul>
                {changes.map((change) => (
                  <li key={change.tunable}>
                    <code>{change.tunable}</code>: <del>{change.before ?? "unset"}</del> →{" "}
                    <ins>{change.after ?? "unset"}</ins>
                  </li>
                ))}
              </ul>
            )}
          </ExpandableRowContent>
        </Td>
      </Tr>
    </Tbody>
  );
}

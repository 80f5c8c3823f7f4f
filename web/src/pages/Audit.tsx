import { Button, Flex, FlexItem, PageSection } from "@patternfly/react-core";
import { ExpandableRowContent, Table, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { type AuditFilter, audit, auditExport, integrity } from "../api/queries";
import { useToasts } from "../components/dialogs/toasts";
import { Moment } from "../components/labels/Moment";
import { Labelled, type Look } from "../components/labels/StateLabel";
import { Empty } from "../components/layout/Async";
import { PageHead } from "../components/layout/PageHead";
import { type Filter, Filters, useFilters, useSorting } from "../components/tables/Filters";
import { PagedList } from "../components/tables/ListTable";
import { Td } from "../components/tables/Td";
import { count } from "../components/text/format";
import { Changes } from "./audit/Changes";
import { pageOf, shortened } from "./audit/subject";

type Entry = Schemas["EntryView"];

const OUTCOMES: Record<Entry["outcome"], Look> = {
  changed: "success",
  done: undefined,
  refused: "warning",
  failed: "danger",
};
const FILTERS: readonly Filter<keyof AuditFilter>[] = [
  { name: "actor", label: "Only by this user number or token id", empty: "User or token id" },
  { name: "action", label: "Only this action", empty: "Action, as in apply_to_vm" },
  { name: "about", label: "Only subjects with this text", empty: "Subject" },
  {
    name: "outcome",
    label: "Only with this outcome",
    empty: "Any outcome",
    choices: Object.keys(OUTCOMES),
  },
];

const SORTS: readonly Schemas["AuditSort"][] = ["-at", "at"];

export default function Audit() {
  const [chosen, choose] = useFilters(FILTERS);
  const filter = chosen as AuditFilter;
  const sorting = useSorting(SORTS, "-at");
  const list = useInfiniteQuery(audit(filter, sorting.by));
  return (
    <>
      <PageHead
        title="Audit"
        actions={
          <Flex>
            {(["csv", "jsonl"] as const).map((form) => (
              <FlexItem key={form}>
                <Button component="a" variant="secondary" href={auditExport(filter, form)} download>
                  Export as {form === "csv" ? "CSV" : "JSON lines"}
                </Button>
              </FlexItem>
            ))}
          </Flex>
        }
      >
        All changes and refused requests.
      </PageHead>
      <PageSection>
        <Filters filters={FILTERS} chosen={chosen} choose={choose} />
        <Integrity />
        <PagedList list={list} empty={<Empty title="No entry matches" />}>
          {(rows) => (
            <Table aria-label="Audit entries" variant="compact" gridBreakPoint="grid-lg">
              <Thead>
                <Tr>
                  <Th screenReaderText="What changed" />
                  <Th
                    sort={{
                      columnIndex: 1,
                      sortBy: { index: 1, direction: sorting.by === "at" ? "asc" : "desc" },
                      onSort: (_event, _index, to) => sorting.choose(to === "asc" ? "at" : "-at"),
                    }}
                  >
                    When
                  </Th>
                  <Th>User</Th>
                  <Th>Action</Th>
                  <Th>Subject</Th>
                  <Th>Outcome</Th>
                </Tr>
              </Thead>
              {rows.map((each, index) => (
                <EntryRows key={each.number} entry={each} index={index} />
              ))}
            </Table>
          )}
        </PagedList>
      </PageSection>
    </>
  );
}

function EntryRows({ entry, index }: { entry: Entry; index: number }) {
  const [open, setOpen] = useState(false);
  return (
    <Tbody isExpanded={open}>
      <Tr>
        <Td expand={{ rowIndex: index, isExpanded: open, onToggle: () => setOpen(!open) }} />
        <Td dataLabel="When" modifier="nowrap">
          <Moment at={entry.at} />
        </Td>
        <Td dataLabel="User">
          {entry.who.name ? (
            <>
              {entry.who.name} <small>({entry.who.kind})</small>
            </>
          ) : (
            entry.who.kind
          )}
        </Td>
        <Td dataLabel="Action" modifier="nowrap">
          {entry.action || "–"}
        </Td>
        <Td dataLabel="Subject" modifier="breakWord">
          <About subject={entry.subject} />
          {entry.vm_name && (
            <>
              {" "}
              (<Link to={`/vms/${entry.vm}`}>{entry.vm_name}</Link>)
            </>
          )}
        </Td>
        <Td dataLabel="Outcome">
          <div>
            <Labelled look={OUTCOMES[entry.outcome]}>{entry.outcome}</Labelled>{" "}
            {entry.codes.join(", ")}
          </div>
        </Td>
      </Tr>
      {open && (
        <Tr isExpanded>
          <Td colSpan={6}>
            <ExpandableRowContent>
              <Changes entry={entry} />
            </ExpandableRowContent>
          </Td>
        </Tr>
      )}
    </Tbody>
  );
}

function About({ subject }: { subject: string }) {
  const page = pageOf(subject);
  const short = shortened(subject);
  const shown = page === null ? short || "–" : <Link to={page}>{short}</Link>;
  return short === subject ? shown : <span title={subject}>{shown}</span>;
}

/** Asked for only: it reads the whole log. */
function Integrity() {
  const check = useQuery(integrity);
  const toasts = useToasts();
  const look = async () => {
    const { error } = await check.refetch();
    if (error) toasts.failed("The check of the log failed", error);
  };
  return (
    <p>
      <Button variant="link" isInline isLoading={check.isFetching} onClick={() => void look()}>
        Check integrity
      </Button>{" "}
      <span role="status">{check.data && verdict(check.data)}</span>
    </p>
  );
}

export function verdict({ entries, dropped, broken_at }: Schemas["IntegrityView"]): string {
  const older = dropped > 0 ? ` ${count(dropped)} older entries were deleted.` : "";
  return broken_at === null
    ? `All ${count(entries)} entries are intact.${older}`
    : `Entry ${count(broken_at)} does not match the hash of its predecessor: the log was altered.`;
}

/** Tables of lists: their columns said once, their labels on narrow screens from these. */
import { Checkbox } from "@patternfly/react-core";
import { Table, type TableProps, Tbody, Th, Thead, Tr } from "@patternfly/react-table";
import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import { type ReactNode, useEffect, useId } from "react";
import { useSearchParams } from "react-router";
import { Async } from "../layout/Async";
import { ColumnChoice, useHiddenColumns } from "./ColumnChoice";
import { More } from "./More";
import { useOpenRow } from "./openRow";
import { useOwnSorting } from "./ownSorting";
import { Td } from "./Td";

export interface ColumnOf<Row> {
  title: string;
  cell: (row: Row) => ReactNode;
  /** Short values stay on one line; addresses and the like may break anywhere. */
  text?: "short" | "breaks";
  /** Its title is long, its values are short: the title may take several lines. */
  wraps?: boolean;
  /** Holds what can be done; its title is for screen readers. */
  actions?: boolean;
  /** The list can be sorted by it: the word that the service has for that. */
  sort?: string;
  /** What a list that is here as a whole is sorted by, where the service does not sort it. */
  value?: (row: Row) => string | number | null;
}

/** How a list is sorted: the service's word, with `-` before it for backwards. */
export interface Sorting {
  by: string;
  choose: (by: string) => void;
}

/** Rows that can be chosen, one by one or all that are shown. */
export interface Choosing<Row> {
  has: (row: Row) => boolean;
  choose: (rows: readonly Row[], on: boolean) => void;
  /** What a row is called, for screen readers. */
  label: (row: Row) => string;
}

const CHECK = "pf-v6-c-table__check"; // its place, where each row is a card
const MANY = 7;
const MODIFIERS = { short: { modifier: "nowrap" }, breaks: { modifier: "breakWord" } } as const;

/**
 * @param below a screen narrower than this shows each row as a card: the more columns, the wider.
 * @param to the address that a row opens, by a click anywhere in it or by Enter.
 * @param chosen whether the reader chooses among the columns; kept in the page's address.
 */
export function ListTable<Row>({
  label,
  columns,
  rows,
  name,
  below = "grid-md",
  sorting,
  choosing,
  to,
  chosen = false,
}: {
  label: string;
  columns: readonly ColumnOf<Row>[];
  rows: readonly Row[];
  name: (row: Row) => string | number;
  below?: NonNullable<TableProps["gridBreakPoint"]>;
  sorting?: Sorting;
  choosing?: Choosing<Row>;
  to?: (row: Row) => string | null;
  chosen?: boolean;
}) {
  const id = useId();
  const opening = useOpenRow();
  const [hidden, hide] = useHiddenColumns(chosen);
  const shown = columns.filter(({ title }, place) => place === 0 || !hidden.has(title));
  const own = useOwnSorting(columns, rows);
  const { by } = sorting ?? own;
  const choose = sorting?.choose ?? own.choose;
  const word = ({ title, sort, value }: ColumnOf<Row>) =>
    sorting ? sort : value && title.toLowerCase().replaceAll(" ", "_");
  const sorted = shown.findIndex((each) => word(each) && word(each) === by.replace("-", ""));
  const direction = by.startsWith("-") ? "desc" : "asc";
  return (
    <>
      {chosen && (
        <ColumnChoice titles={columns.map(({ title }) => title)} hidden={hidden} hide={hide} />
      )}
      <Table
        aria-label={label}
        variant="compact"
        gridBreakPoint={below}
        {...(shown.length > MANY ? { className: "vt-close" } : {})}
      >
        <Thead>
          <Tr>
            {choosing && (
              <Th className={CHECK}>
                <Checkbox
                  id={`${id}-all`}
                  aria-label="Choose all shown"
                  isChecked={rows.every(choosing.has) || (rows.some(choosing.has) ? null : false)}
                  onChange={(_event, on) => choosing.choose(rows, on)}
                />
              </Th>
            )}
            {shown.map((column, columnIndex) => {
              const { title, actions, wraps } = column;
              const sort = word(column);
              return actions ? (
                <Th key={title} screenReaderText={title} />
              ) : (
                <Th
                  key={title}
                  modifier={wraps ? "wrap" : "nowrap"}
                  {...(sort
                    ? {
                        sort: {
                          columnIndex,
                          sortBy: sorted < 0 ? {} : { index: sorted, direction },
                          onSort: (_event: unknown, _index: number, to: "asc" | "desc") =>
                            choose(to === "desc" ? `-${sort}` : sort),
                        },
                      }
                    : {})}
                >
                  {title}
                </Th>
              );
            })}
          </Tr>
        </Thead>
        <Tbody>
          {own.rows.map((row, rowIndex) => {
            return (
              <Tr key={name(row)} {...opening(to?.(row) ?? null)}>
                {choosing && (
                  <Td className={CHECK}>
                    <Checkbox
                      id={`${id}-${rowIndex}`}
                      aria-label={`Choose ${choosing.label(row)}`}
                      isChecked={choosing.has(row)}
                      onChange={(_event, on) => choosing.choose([row], on)}
                    />
                  </Td>
                )}
                {shown.map(({ title, cell, text, actions }) =>
                  actions ? (
                    <Td key={title} isActionCell>
                      {cell(row)}
                    </Td>
                  ) : (
                    <Td key={title} dataLabel={title} {...(text ? MODIFIERS[text] : {})}>
                      {cell(row)}
                    </Td>
                  ),
                )}
              </Tr>
            );
          })}
        </Tbody>
      </Table>
    </>
  );
}

interface PageOf<Row> {
  items: Row[];
  next: string | null;
}

/** Every row that was fetched so far. */
export function rowsOf<Row>(data: InfiniteData<PageOf<Row>, unknown>): Row[] {
  return data.pages.flatMap((page) => page.items);
}

/**
 * A list that is fetched page by page, with its loading, empty and error states.
 *
 * @param whole its table sorts by itself: once it is to, all of the list is fetched.
 */
export function PagedList<Page extends PageOf<unknown>>({
  list,
  empty,
  lines = 4,
  whole = false,
  children,
}: {
  list: UseInfiniteQueryResult<InfiniteData<Page, unknown>>;
  empty: ReactNode;
  lines?: number;
  whole?: boolean;
  children: (rows: Page["items"], pages: readonly Page[]) => ReactNode;
}) {
  const [search] = useSearchParams();
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  const fetches = whole && search.has("sort") && hasNextPage && !isFetchingNextPage;
  useEffect(() => {
    if (fetches) void fetchNextPage();
  }, [fetches, fetchNextPage]);
  return (
    <>
      <Async query={list} lines={lines}>
        {(data) => {
          const rows = data.pages.flatMap((page) => page.items) as Page["items"];
          return rows.length === 0 ? empty : children(rows, data.pages);
        }}
      </Async>
      <More list={list} />
    </>
  );
}

/** Sorting of lists that the page has as a whole, kept in its address. */
import { useMemo } from "react";
import { useSearchParams } from "react-router";

interface Sortable<Row> {
  title: string;
  value?: (row: Row) => string | number | null;
}

/** The word for a column in the address: `last used` is `last_used`. */
const wordOf = (title: string) => title.toLowerCase().replaceAll(" ", "_");

/** Rows in the order that the address asks for; as they came where it does not. */
export function useOwnSorting<Row>(columns: readonly Sortable<Row>[], rows: readonly Row[]) {
  const [search, setSearch] = useSearchParams();
  const by = search.get("sort") ?? "";
  const value = columns.find(
    (each) => each.value && wordOf(each.title) === by.replace("-", ""),
  )?.value;
  const ordered = useMemo(
    () => (value ? inOrder(rows, value, by.startsWith("-")) : rows),
    [rows, value, by],
  );
  const choose = (to: string) =>
    setSearch(
      (old) => {
        const next = new URLSearchParams(old);
        next.set("sort", to);
        return next;
      },
      { replace: true },
    );
  return { rows: ordered, by, choose };
}

/** What has no value comes last, whichever way. */
export function inOrder<Row>(
  rows: readonly Row[],
  value: (row: Row) => string | number | null,
  backwards: boolean,
): Row[] {
  return [...rows].sort((one, two) => {
    const [a, b] = [value(one), value(two)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    const order =
      typeof a === "number" && typeof b === "number"
        ? a - b
        : String(a).localeCompare(String(b), "en", { numeric: true });
    return backwards ? -order : order;
  });
}

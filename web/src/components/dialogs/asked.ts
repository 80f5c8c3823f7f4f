/** Dialogs that an address opens: `/hosts?do=add`. */
import { useCallback, useEffect, useState } from "react";
import { useSearchParams } from "react-router";

const DO = "do";

/** The dialog that is open, of *all*; null where none is. */
export function useDialog<Name extends string>(
  all: readonly Name[],
): [Name | null, (name: Name | null) => void] {
  const [search, setSearch] = useSearchParams();
  const [dialog, open] = useState<Name | null>(null);
  const asked = all.find((each) => each === search.get(DO)) ?? null;
  const forget = useCallback(
    () =>
      setSearch(
        (old) => {
          const next = new URLSearchParams(old);
          next.delete(DO);
          return next;
        },
        { replace: true },
      ),
    [setSearch],
  );
  useEffect(() => {
    if (asked === null) return;
    open(asked);
    forget(); // going back must not open it again
  }, [asked, forget]);
  return [dialog, open];
}

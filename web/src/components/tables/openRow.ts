/** Rows of tables that open what they are about. */
import type { KeyboardEvent, MouseEvent } from "react";
import { useNavigate } from "react-router";

/** What in a row has a use of its own, so that a click on it does not open the row. */
const OWN_USE = "a, button, input, label, select, [role=button], .pf-v6-c-table__check";

/** Makes a row open an address, by a click anywhere in it or by Enter; nothing without one. */
export function useOpenRow(): (address: string | null) => {
  isClickable?: true;
  onRowClick?: (event?: MouseEvent | KeyboardEvent) => void;
} {
  const navigate = useNavigate();
  return (address) =>
    address === null
      ? {}
      : {
          isClickable: true,
          onRowClick: (event) => {
            if (!event || (event.target as Element).closest(OWN_USE)) return;
            if (globalThis.getSelection?.()?.toString()) return; // somebody copies from it
            if (event.ctrlKey || event.metaKey) globalThis.open(address, "_blank", "noopener");
            else navigate(address);
          },
        };
}

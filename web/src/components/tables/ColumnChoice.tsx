/** Which columns a list shows, kept in the page's address. */
import { MenuToggle, Select, SelectList, SelectOption } from "@patternfly/react-core";
import { useMemo, useState } from "react";
import { useSearchParams } from "react-router";

const HIDE = "hide";

/** The titles of the hidden columns, and what hides or shows one. */
export function useHiddenColumns(
  chosen: boolean,
): [ReadonlySet<string>, (title: string, hidden: boolean) => void] {
  const [search, setSearch] = useSearchParams();
  const told = chosen ? (search.get(HIDE) ?? "") : "";
  const hidden = useMemo(() => new Set(told.split(",").filter(Boolean)), [told]);
  const hide = (title: string, away: boolean) =>
    setSearch(
      (old) => {
        const next = new URLSearchParams(old);
        const titles = (next.get(HIDE) ?? "").split(",").filter((each) => each && each !== title);
        if (away) titles.push(title);
        if (titles.length > 0) next.set(HIDE, titles.join(","));
        else next.delete(HIDE);
        return next;
      },
      { replace: true },
    );
  return [hidden, hide];
}

/** The first column stays: it leads to the row's page. */
export function ColumnChoice({
  titles,
  hidden,
  hide,
}: {
  titles: readonly string[];
  hidden: ReadonlySet<string>;
  hide: (title: string, hidden: boolean) => void;
}) {
  const [isOpen, setOpen] = useState(false);
  const others = titles.slice(1);
  return (
    <Select
      role="menu"
      isOpen={isOpen}
      onOpenChange={setOpen}
      onSelect={(_event, title) => hide(String(title), !hidden.has(String(title)))}
      popperProps={{ position: "right" }}
      toggle={(toggle) => (
        <MenuToggle
          ref={toggle}
          variant="plainText"
          isExpanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          Columns
          {hidden.size > 0 &&
            ` (${others.filter((each) => !hidden.has(each)).length + 1} of ${titles.length})`}
        </MenuToggle>
      )}
    >
      <SelectList>
        {others.map((title) => (
          <SelectOption key={title} value={title} hasCheckbox isSelected={!hidden.has(title)}>
            {title}
          </SelectOption>
        ))}
      </SelectList>
    </Select>
  );
}

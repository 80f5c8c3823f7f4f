/** The filters above a list, kept in the page's address. */
import {
  FormSelect,
  FormSelectOption,
  SearchInput,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { type ReactNode, useEffect, useState } from "react";
import { useSearchParams } from "react-router";
import { useSettled } from "./settled";

const QUIET_MS = 300; // what is being typed asks the service nothing yet

/** The filters in the address by these names, and what changes one. */
export function useFilters<Name extends string>(
  names: readonly Name[],
): [Partial<Record<Name, string>>, (name: Name, value: string) => void] {
  const [search, setSearch] = useSearchParams();
  const found: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = search.get(name);
    if (value) found[name] = value;
  }
  const choose = (name: Name, value: string) =>
    setSearch(
      (old) => {
        const next = new URLSearchParams(old);
        if (value) next.set(name, value);
        else next.delete(name);
        return next;
      },
      { replace: true },
    );
  return [found, choose];
}

export function Filters({ children }: { children: ReactNode }) {
  return (
    <Toolbar aria-label="Filters">
      <ToolbarContent rowWrap={{ default: "wrap" }}>{children}</ToolbarContent>
    </Toolbar>
  );
}

/** A filter that is typed. *label* says what it lets through. */
export function TextFilter({
  label,
  placeholder,
  value = "",
  choose,
}: {
  label: string;
  placeholder: string;
  value: string | undefined;
  choose: (value: string) => void;
}) {
  const [typed, setTyped] = useState(value);
  const settled = useSettled(typed, QUIET_MS);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what was typed is told
  useEffect(() => {
    if (settled !== value) choose(settled);
  }, [settled]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: an address from elsewhere
  useEffect(() => {
    if (value !== settled) setTyped(value);
  }, [value]);
  return (
    <ToolbarItem>
      <SearchInput
        aria-label={label}
        placeholder={placeholder}
        value={typed}
        onChange={(_event, text) => setTyped(text)}
        onClear={() => setTyped("")}
      />
    </ToolbarItem>
  );
}

/** A filter that is chosen; the first choice lets everything through. */
export function ChoiceFilter({
  label,
  all,
  choices,
  value = "",
  choose,
}: {
  label: string;
  all: string;
  choices: readonly (readonly [value: string, text: string])[];
  value: string | undefined;
  choose: (value: string) => void;
}) {
  return (
    <ToolbarItem>
      <FormSelect aria-label={label} value={value} onChange={(_event, chosen) => choose(chosen)}>
        <FormSelectOption value="" label={all} />
        {choices.map(([each, text]) => (
          <FormSelectOption key={each} value={each} label={text} />
        ))}
      </FormSelect>
    </ToolbarItem>
  );
}

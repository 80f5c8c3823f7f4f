/** The filters above a list, kept in the page's address. */
import {
  FormSelect,
  FormSelectOption,
  SearchInput,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Children, type ReactNode, useEffect, useState } from "react";
import { useSearchParams } from "react-router";
import { useSettled } from "../forms/settled";

const LEAST_WIDTH = "11rem";
// A choice's arrow would lie over its text, whose letters are narrower than its digits.
const LETTER_CH = 0.85;
const ARROW_CH = 6;
const QUIET_MS = 300; // what is being typed asks the service nothing yet

type Choice = string | readonly [value: string, text: string];

/** A filter: *label* says what it lets through. It is chosen where it has *choices*, else typed. */
export interface Filter<Name extends string> {
  name: Name;
  label: string;
  /** What it says while it lets everything through. */
  empty: string;
  choices?: readonly Choice[];
}

const wordOf = (choice: Choice) => (typeof choice === "string" ? choice : choice[0]);
const textOf = (choice: Choice) => (typeof choice === "string" ? choice : choice[1]);

/**
 * What *filters* are set to in the page's address, and what changes one. A choice that there is
 * none of is passed over: addresses are typed by people, too.
 */
export function useFilters<Name extends string>(
  filters: readonly Pick<Filter<Name>, "name" | "choices">[],
): [Partial<Record<Name, string>>, (name: Name, value: string) => void] {
  const [search, setSearch] = useSearchParams();
  const found: Partial<Record<Name, string>> = {};
  for (const { name, choices } of filters) {
    const value = search.get(name);
    if (value && (choices?.some((each) => wordOf(each) === value) ?? true)) found[name] = value;
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

/** How a list is sorted in the page's address; *usual* where it does not say. */
export function useSorting<Sort extends string>(
  all: readonly Sort[],
  usual: Sort,
): { by: Sort; choose: (by: string) => void } {
  const [search, setSearch] = useSearchParams();
  const asked = search.get("sort");
  const by = all.find((each) => each === asked) ?? usual;
  const choose = (to: string) =>
    setSearch(
      (old) => {
        const next = new URLSearchParams(old);
        if (to === usual) next.delete("sort");
        else next.set("sort", to);
        return next;
      },
      { replace: true },
    );
  return { by, choose };
}

/** Filters side by side; *children* stand behind them. */
export function Filters<Name extends string>({
  filters,
  chosen,
  choose,
  children,
}: {
  filters: readonly Filter<Name>[];
  chosen: Partial<Record<Name, string>>;
  choose: (name: Name, value: string) => void;
  children?: ReactNode;
}) {
  return (
    <Toolbar aria-label="Filters">
      <ToolbarContent rowWrap={{ default: "wrap" }}>
        {filters.map(({ name, choices, ...said }) => {
          const one = {
            ...said,
            value: chosen[name] ?? "",
            choose: (value: string) => choose(name, value),
          };
          return (
            <ToolbarItem key={name} style={{ minInlineSize: widthOf(choices, said.empty) }}>
              {choices ? <ChoiceFilter {...one} choices={choices} /> : <TextFilter {...one} />}
            </ToolbarItem>
          );
        })}
        {Children.map(children, (child) => (
          <ToolbarItem>{child}</ToolbarItem>
        ))}
      </ToolbarContent>
    </Toolbar>
  );
}

function widthOf(choices: readonly Choice[] | undefined, empty: string): string {
  const longest = Math.max(...[empty, ...(choices ?? []).map(textOf)].map((each) => each.length));
  return choices
    ? `max(${LEAST_WIDTH}, ${Math.ceil(longest * LETTER_CH) + ARROW_CH}ch)`
    : LEAST_WIDTH;
}

interface One {
  label: string;
  empty: string;
  value: string;
  choose: (value: string) => void;
}

function TextFilter({ label, empty, value, choose }: One) {
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
    <SearchInput
      aria-label={label}
      placeholder={empty}
      value={typed}
      onChange={(_event, text) => setTyped(text)}
      onClear={() => setTyped("")}
    />
  );
}

function ChoiceFilter({
  label,
  empty,
  value,
  choose,
  choices,
}: One & { choices: readonly Choice[] }) {
  return (
    <FormSelect aria-label={label} value={value} onChange={(_event, chosen) => choose(chosen)}>
      <FormSelectOption value="" label={empty} />
      {choices.map((each) => (
        <FormSelectOption key={wordOf(each)} value={wordOf(each)} label={textOf(each)} />
      ))}
    </FormSelect>
  );
}

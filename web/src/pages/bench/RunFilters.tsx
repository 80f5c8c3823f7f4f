import {
  Button,
  FormSelect,
  FormSelectOption,
  InputGroup,
  InputGroupItem,
  InputGroupText,
  Label,
  MenuToggle,
  SearchInput,
  Select,
  SelectList,
  SelectOption,
  TextInput,
  Toolbar,
  ToolbarContent,
  ToolbarFilter,
  ToolbarItem,
} from "@patternfly/react-core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useSearchParams } from "react-router";
import { campaign, campaigns } from "../../api/bench";
import { useSettled } from "../../components/forms/settled";
import { EXACT, STATES } from "./runFilter";
import { changed } from "./search";

/** What the runs table shows; all of it is in the address, so that it can be passed on. */
export function RunFilters() {
  const [search, setSearch] = useSearchParams();
  const states = search.getAll("state");
  const set = (key: string, value: string | readonly string[]) =>
    setSearch((old) => changed(old, { [key]: value }), { replace: true });
  const toggle = (state: string) =>
    set("state", states.includes(state) ? states.filter((s) => s !== state) : [...states, state]);
  return (
    <Toolbar aria-label="Filters">
      <ToolbarContent>
        <ToolbarItem>
          <TextFilter value={search.get("search") ?? ""} set={(value) => set("search", value)} />
        </ToolbarItem>
        {EXACT.map(([key, word]) => {
          const value = search.get(key);
          return (
            value && (
              <ToolbarItem key={key} alignSelf="center">
                <Label
                  onClose={() => set(key, "")}
                  closeBtnAriaLabel={`Show any ${word.toLowerCase()}`}
                >
                  {`${word}: ${value}`}
                </Label>
              </ToolbarItem>
            )
          );
        })}
        <ToolbarFilter
          categoryName="State"
          labels={states}
          deleteLabel={(_category, label) => toggle(String(label))}
          deleteLabelGroup={() => set("state", [])}
        >
          <StateChoice chosen={states} toggle={toggle} />
        </ToolbarFilter>
        <ToolbarItem>
          <CampaignChoice
            value={search.get("campaign") ?? ""}
            set={(value) => set("campaign", value)}
          />
        </ToolbarItem>
        <ToolbarItem>
          <InputGroup>
            <InputGroupText>Since</InputGroupText>
            <InputGroupItem>
              <TextInput
                type="date"
                aria-label="Created on this day or later"
                value={search.get("since") ?? ""}
                onChange={(_event, day) => set("since", day)}
              />
            </InputGroupItem>
          </InputGroup>
        </ToolbarItem>
        {search.size > 0 && (
          <ToolbarItem>
            <Button variant="link" onClick={() => setSearch({})}>
              Clear all filters
            </Button>
          </ToolbarItem>
        )}
      </ToolbarContent>
    </Toolbar>
  );
}

const QUIET_MS = 300;

/** A word that is looked for once nobody types any more. */
function TextFilter({ value, set }: { value: string; set: (value: string) => void }) {
  const [typed, setTyped] = useState(value);
  const [seen, setSeen] = useState(value);
  if (seen !== value) {
    setSeen(value);
    setTyped(value); // the address was changed elsewhere
  }
  const settled = useSettled(typed, QUIET_MS);
  useEffect(() => {
    if (settled === typed && settled.trim() !== value) set(settled.trim());
  });
  return (
    <SearchInput
      aria-label="Search by scenario, arm, profile or UUID"
      placeholder="Scenario, arm, profile, UUID"
      value={typed}
      onChange={(_event, text) => setTyped(text)}
      onClear={() => set("")}
    />
  );
}

function StateChoice({
  chosen,
  toggle,
}: {
  chosen: readonly string[];
  toggle: (state: string) => void;
}) {
  const [open, setOpen] = useState(false);
  return (
    <Select
      role="menu"
      isOpen={open}
      onOpenChange={setOpen}
      onSelect={(_event, state) => toggle(String(state))}
      toggle={(ref) => (
        <MenuToggle ref={ref} isExpanded={open} onClick={() => setOpen(!open)}>
          State
        </MenuToggle>
      )}
    >
      <SelectList>
        {STATES.map((state) => (
          <SelectOption key={state} value={state} hasCheckbox isSelected={chosen.includes(state)}>
            {state}
          </SelectOption>
        ))}
      </SelectList>
    </Select>
  );
}

function CampaignChoice({ value, set }: { value: string; set: (value: string) => void }) {
  const list = useInfiniteQuery(campaigns());
  const items = list.data?.pages.flatMap((page) => page.items) ?? [];
  const listed = items.some((each) => each.id === value);
  const other = useQuery({ ...campaign(value), enabled: value !== "" && !listed });
  return (
    <FormSelect
      aria-label="Only runs of this campaign"
      value={value}
      onChange={(_event, chosen) => set(chosen)}
    >
      <FormSelectOption value="" label="Any campaign, or none" />
      {value !== "" && !listed && (
        <FormSelectOption value={value} label={other.data?.name ?? value} />
      )}
      {items.map((each) => (
        <FormSelectOption
          key={each.id}
          value={each.id}
          label={`${each.name}, ${each.created_at.slice(0, 10)}`}
        />
      ))}
    </FormSelect>
  );
}

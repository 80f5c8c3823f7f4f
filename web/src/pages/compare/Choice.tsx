import {
  ActionGroup,
  Button,
  Form,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  Tab,
  TabContentBody,
  Tabs,
  TabTitleText,
  TextInput,
} from "@patternfly/react-core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "react-router";
import { campaign as campaignOf, campaigns } from "../../api/bench";
import { More } from "../../components/tables/More";
import { Section } from "../bench/Section";

/** Choose what is compared: a campaign's arms, or any runs by what they are. */
export function Choice() {
  const [search, setSearch] = useSearchParams();
  const byRuns = search.get("campaign") === null && search.get("a") !== null;
  const [tab, setTab] = useState<string | number>(byRuns ? "runs" : "campaign");
  return (
    <Section title="Selection">
      <Tabs
        activeKey={tab}
        onSelect={(_event, key) => setTab(key)}
        aria-label="Selection"
        mountOnEnter
        unmountOnExit
      >
        <Tab eventKey="campaign" title={<TabTitleText>A campaign</TabTitleText>}>
          <TabContentBody hasPadding>
            <OfCampaign
              value={search.get("campaign") ?? ""}
              choose={(campaign) => setSearch(campaign ? { campaign } : {})}
            />
          </TabContentBody>
        </Tab>
        <Tab eventKey="runs" title={<TabTitleText>Any runs</TabTitleText>}>
          <TabContentBody hasPadding>
            <OfRuns
              key={search.toString()}
              search={search}
              choose={(chosen) => setSearch(chosen)}
            />
          </TabContentBody>
        </Tab>
      </Tabs>
    </Section>
  );
}

function OfCampaign({ value, choose }: { value: string; choose: (campaign: string) => void }) {
  const list = useInfiniteQuery(campaigns());
  const items = list.data?.pages.flatMap((page) => page.items) ?? [];
  const listed = items.some((each) => each.id === value);
  const other = useQuery({ ...campaignOf(value), enabled: value !== "" && !listed });
  return (
    <Form isWidthLimited onSubmit={(event) => event.preventDefault()}>
      <FormGroup label="Campaign" fieldId="compare-campaign">
        <FormSelect
          id="compare-campaign"
          value={value}
          onChange={(_event, chosen) => choose(chosen)}
        >
          <FormSelectOption value="" label="Choose a campaign" isPlaceholder />
          {value !== "" && !listed && (
            <FormSelectOption value={value} label={other.data?.name ?? value} />
          )}
          {items.map((each) => (
            <FormSelectOption
              key={each.id}
              value={each.id}
              label={`${each.name}: ${each.arms.join(", ")} (${each.state})`}
            />
          ))}
        </FormSelect>
        <More list={list} />
      </FormGroup>
    </Form>
  );
}

const SIDES = [
  { key: "a", label: "A, the base", hint: "scenario=plain/1gbs,profile=stock" },
  { key: "b", label: "B, compared to A", hint: "scenario=plain/1gbs,profile=tuned" },
] as const;

function OfRuns({
  search,
  choose,
}: {
  search: URLSearchParams;
  choose: (chosen: Record<string, string>) => void;
}) {
  const [sides, setSides] = useState({ a: search.get("a") ?? "", b: search.get("b") ?? "" });
  const [margin, setMargin] = useState(search.get("margin") ?? "");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    choose({ ...sides, ...(margin ? { margin } : {}) });
  };
  return (
    <Form isWidthLimited onSubmit={submit}>
      {SIDES.map(({ key, label, hint }) => (
        <FormGroup key={key} label={label} fieldId={`compare-${key}`} isRequired>
          <TextInput
            id={`compare-${key}`}
            value={sides[key]}
            placeholder={hint}
            onChange={(_event, typed) => setSides((old) => ({ ...old, [key]: typed }))}
          />
        </FormGroup>
      ))}
      <FormGroup label="Margin, in percent" fieldId="compare-margin">
        <TextInput
          id="compare-margin"
          inputMode="decimal"
          value={margin}
          placeholder="5"
          onChange={(_event, typed) => setMargin(typed)}
        />
        <FormHelperText>
          <HelperText>
            <HelperTextItem>
              Select runs by scenario, family, profile, campaign, arm, fingerprint and host.
            </HelperTextItem>
          </HelperText>
        </FormHelperText>
      </FormGroup>
      <ActionGroup>
        <Button type="submit" isDisabled={!sides.a.trim() || !sides.b.trim()}>
          Compare
        </Button>
      </ActionGroup>
    </Form>
  );
}

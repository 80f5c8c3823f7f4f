import {
  FormSelect,
  FormSelectOption,
  PageSection,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "react-router";
import { type CampaignProgress, campaigns } from "../api/bench";
import type { Schemas } from "../api/client";
import { Async, Empty } from "../components/Async";
import { CAMPAIGN_STATES, CampaignLabel } from "../components/BenchLabels";
import { ButtonLink } from "../components/ButtonLink";
import { count } from "../components/format";
import { Moment } from "../components/Moment";
import { More } from "../components/More";
import { about } from "../components/measure";
import { useBenchProgress } from "../components/useBenchProgress";
import { BenchHead } from "./bench/BenchHead";
import { changed } from "./bench/search";

const STATES = Object.keys(CAMPAIGN_STATES) as Schemas["CampaignState"][];

export default function Campaigns() {
  const [search, setSearch] = useSearchParams();
  const state = STATES.find((each) => each === search.get("state"));
  const list = useInfiniteQuery({
    ...campaigns(state === undefined ? {} : { state: [state] }),
    placeholderData: keepPreviousData,
  });
  const order = <ButtonLink to="/bench/campaigns/new">New campaign</ButtonLink>;
  return (
    <>
      <BenchHead title="Campaigns" actions={order}>
        Arms held against each other, in randomised blocks, under a plan that is fixed before the
        first run.
      </BenchHead>
      <PageSection>
        <Toolbar>
          <ToolbarContent>
            <ToolbarItem>
              <FormSelect
                aria-label="Only campaigns in this state"
                value={state ?? ""}
                onChange={(_event, chosen) =>
                  setSearch((old) => changed(old, { state: chosen }), { replace: true })
                }
              >
                <FormSelectOption value="" label="Any state" />
                {STATES.map((each) => (
                  <FormSelectOption key={each} value={each} label={each} />
                ))}
              </FormSelect>
            </ToolbarItem>
          </ToolbarContent>
        </Toolbar>
        <Async query={list}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            if (items.length > 0) return <CampaignTable campaigns={items} />;
            if (state !== undefined) return <Empty title={`No campaign is ${state}`} />;
            return (
              <Empty title="No campaigns yet" action={order}>
                A campaign measures whether one setting really beats another on this machine.
              </Empty>
            );
          }}
        </Async>
        <More list={list} />
      </PageSection>
    </>
  );
}

function CampaignTable({ campaigns: items }: { campaigns: readonly Schemas["CampaignView"][] }) {
  return (
    <Table aria-label="Campaigns" variant="compact">
      <Thead>
        <Tr>
          <Th>Name</Th>
          <Th>State</Th>
          <Th>Arms</Th>
          <Th>Runs</Th>
          <Th>Time left</Th>
          <Th>Ordered</Th>
          <Th>Result</Th>
        </Tr>
      </Thead>
      <Tbody>
        {items.map((each) => (
          <Tr key={each.id}>
            <Td dataLabel="Name">
              <Link to={`/bench/campaigns/${each.id}`}>{each.name}</Link>
            </Td>
            <Td dataLabel="State">
              <CampaignLabel state={each.state} />
            </Td>
            <Td dataLabel="Arms">{each.arms.join(", ")}</Td>
            <HowFar campaign={each} />
            <Td dataLabel="Ordered">
              <Moment at={each.created_at} />
            </Td>
            <Td dataLabel="Result">
              <Link
                to={`/bench/compare?campaign=${each.id}`}
                aria-label={`Compare the arms of ${each.name}`}
              >
                Compare
              </Link>
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

/** How many runs are made and how long it goes on: told anew each second while it runs. */
function HowFar({ campaign: { id, done, total, left_s } }: { campaign: Schemas["CampaignView"] }) {
  const live = useBenchProgress<CampaignProgress>("campaign", id);
  const latest = left_s !== null && live !== null && live.done >= done ? live : { done, left_s };
  return (
    <>
      <Td dataLabel="Runs">
        {count(latest.done)} of {count(total)}
      </Td>
      <Td dataLabel="Time left">{latest.left_s === null ? "–" : about(latest.left_s)}</Td>
    </>
  );
}

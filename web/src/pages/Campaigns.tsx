import { PageSection } from "@patternfly/react-core";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { type CampaignProgress, campaigns } from "../api/bench";
import type { Schemas } from "../api/client";
import { CAMPAIGN_STATES, CampaignLabel } from "../components/labels/BenchLabels";
import { Moment } from "../components/labels/Moment";
import { Empty } from "../components/layout/Async";
import { ButtonLink } from "../components/layout/ButtonLink";
import { useBenchProgress } from "../components/live/useBenchProgress";
import { type Filter, Filters, useFilters } from "../components/tables/Filters";
import { type ColumnOf, ListTable, PagedList } from "../components/tables/ListTable";
import { count } from "../components/text/format";
import { about } from "../components/text/measure";
import { BenchHead } from "./bench/BenchHead";

type Campaign = Schemas["CampaignView"];
type State = Schemas["CampaignState"];

const FILTERS: readonly Filter<"search" | "state">[] = [
  { name: "search", label: "Search by name or UUID", empty: "Name, UUID" },
  {
    name: "state",
    label: "Only campaigns in this state",
    empty: "In any state",
    choices: Object.keys(CAMPAIGN_STATES),
  },
];

const COLUMNS: readonly ColumnOf<Campaign>[] = [
  {
    title: "Name",
    cell: (each) => <Link to={`/bench/campaigns/${each.id}`}>{each.name}</Link>,
  },
  { title: "State", text: "short", cell: (each) => <CampaignLabel state={each.state} /> },
  { title: "Arms", cell: (each) => each.arms.join(", ") },
  { title: "Runs", text: "short", cell: (each) => <Done campaign={each} /> },
  { title: "Time left", text: "short", cell: (each) => <Left campaign={each} /> },
  { title: "Created", text: "short", cell: (each) => <Moment at={each.created_at} /> },
  {
    title: "Result",
    cell: (each) => (
      <Link
        to={`/bench/compare?campaign=${each.id}`}
        aria-label={`Compare the arms of ${each.name}`}
      >
        Compare
      </Link>
    ),
  },
];

export default function Campaigns() {
  const [chosen, choose] = useFilters(FILTERS);
  const { search, state } = chosen;
  const list = useInfiniteQuery({
    ...campaigns({
      ...(search === undefined ? {} : { search }),
      ...(state === undefined ? {} : { state: [state as State] }),
    }),
    placeholderData: keepPreviousData,
  });
  const order = <ButtonLink to="/bench/campaigns/new">New campaign</ButtonLink>;
  return (
    <>
      <BenchHead title="Campaigns" actions={order}>
        Compare arms in randomised blocks. The plan is fixed before the first run.
      </BenchHead>
      <PageSection>
        <Filters filters={FILTERS} chosen={chosen} choose={choose} />
        <PagedList
          list={list}
          empty={
            search === undefined && state === undefined ? (
              <Empty title="No campaigns yet" action={order}>
                A campaign measures whether one setting is better than another on this machine.
              </Empty>
            ) : (
              <Empty title="No campaign matches" />
            )
          }
        >
          {(rows) => (
            <ListTable
              label="Campaigns"
              columns={COLUMNS}
              rows={rows}
              name={(each) => each.id}
              below="grid-lg"
              to={(each) => `/bench/campaigns/${each.id}`}
              chosen
            />
          )}
        </PagedList>
      </PageSection>
    </>
  );
}

/** How far a campaign is: told anew each second while it runs. */
function useHowFar({ id, done, remaining_s }: Campaign) {
  const live = useBenchProgress<CampaignProgress>("campaign", id);
  return remaining_s !== null && live !== null && live.done >= done ? live : { done, remaining_s };
}

function Done({ campaign }: { campaign: Campaign }) {
  return `${count(useHowFar(campaign).done)} of ${count(campaign.total)}`;
}

function Left({ campaign }: { campaign: Campaign }) {
  const { remaining_s } = useHowFar(campaign);
  return remaining_s === null ? "–" : about(remaining_s);
}

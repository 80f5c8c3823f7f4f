import {
  Card,
  CardBody,
  CardTitle,
  List,
  ListItem,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { campaigns, comparison } from "../../api/bench";
import type { Schemas } from "../../api/client";
import { VerdictLabel } from "../../components/labels/BenchLabels";
import { Moment } from "../../components/labels/Moment";
import { Async } from "../../components/layout/Async";
import { bounded } from "../../components/text/format";
import { metricOf, pairsOf, primaryOf } from "../compare/pairs";

const SHOWN = 3;
const PAIRS = 4;

/** The campaigns that ended last, and what they say. */
export function LastComparisons() {
  const list = useInfiniteQuery(campaigns({ state: ["completed"] }));
  return (
    <Card isCompact component="section" aria-labelledby="last-comparisons">
      <CardTitle component="h2" id="last-comparisons">
        Latest comparisons
      </CardTitle>
      <CardBody>
        <Async query={list} lines={2}>
          {(data) => {
            const items = (data.pages[0]?.items ?? []).slice(0, SHOWN);
            if (items.length === 0) {
              return (
                <p>
                  No comparisons yet. <Link to="/bench/campaigns/new">Start a campaign</Link>
                </p>
              );
            }
            return (
              <Stack hasGutter>
                {items.map((each) => (
                  <One key={each.id} campaign={each} />
                ))}
                <StackItem>
                  <Link to="/bench/campaigns">All campaigns</Link>
                </StackItem>
              </Stack>
            );
          }}
        </Async>
      </CardBody>
    </Card>
  );
}

function One({ campaign }: { campaign: Schemas["CampaignView"] }) {
  const { id, primary_metric: metric } = campaign;
  const found = useQuery({ ...comparison({ campaign: id, metric: [metric] }), retry: false });
  return (
    <StackItem>
      <Link to={`/bench/compare?campaign=${id}`}>{campaign.title || campaign.name}</Link>{" "}
      <Moment at={campaign.ended_at} />
      <Async query={found} lines={1}>
        {(report) => (
          <List isPlain>
            {pairsOf(report)
              .slice(0, PAIRS)
              .map((pair) => {
                const primary = primaryOf(pair);
                if (primary === undefined) return null;
                return (
                  <ListItem key={pair.id}>
                    {pair.b} compared to {pair.a}: {metricOf(report, metric)?.title ?? metric}{" "}
                    {primary.effect
                      ? `${bounded(primary.text.effect)} (${primary.text.interval})`
                      : `(${primary.reason})`}{" "}
                    <VerdictLabel comparison={primary} />
                  </ListItem>
                );
              })}
          </List>
        )}
      </Async>
    </StackItem>
  );
}

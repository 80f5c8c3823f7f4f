import { PageSection } from "@patternfly/react-core";
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useSearchParams } from "react-router";
import { metrics, runs } from "../api/bench";
import { Async, Empty } from "../components/layout/Async";
import { ButtonLink } from "../components/layout/ButtonLink";
import { More } from "../components/tables/More";
import { BenchHead } from "./bench/BenchHead";
import { RunFilters } from "./bench/RunFilters";
import { RunTable } from "./bench/RunTable";
import { runFilter } from "./bench/runFilter";

export default function Runs() {
  const [search] = useSearchParams();
  const filter = useMemo(() => runFilter(search), [search]);
  const list = useInfiniteQuery({ ...runs(filter), placeholderData: keepPreviousData });
  const table = useQuery(metrics);
  const filtered = Object.keys(filter).length > 0;
  return (
    <>
      <BenchHead title="Runs">One measurement each, newest first.</BenchHead>
      <PageSection aria-busy={list.isPlaceholderData}>
        <RunFilters />
        <Async query={list} lines={8}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            if (items.length > 0) return <RunTable runs={items} metrics={table.data ?? []} />;
            return filtered ? (
              <Empty title="No run matches" />
            ) : (
              <Empty
                title="No runs yet"
                action={<ButtonLink to="/bench/scenarios">Choose a scenario</ButtonLink>}
              >
                Run a scenario once, or compare arms in a campaign.
              </Empty>
            );
          }}
        </Async>
        <More list={list} />
      </PageSection>
    </>
  );
}

import { PageSection } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import type { Schemas } from "../api/client";
import { type MigrationFilter, migrations } from "../api/queries";
import { Empty } from "../components/Async";
import { ChoiceFilter, Filters, TextFilter, useFilters } from "../components/Filters";
import { PagedList } from "../components/ListTable";
import { MigrationTable } from "../components/MigrationTable";
import { PageHead } from "../components/PageHead";
import { MIGRATION_STATES } from "../components/StateLabel";

export default function Migrations() {
  const [filter, choose] = useFilters(["vm", "host", "profile", "state"]);
  const { state, ...named } = filter;
  const wanted: MigrationFilter = {
    ...named,
    ...(state ? { state: state as Schemas["MigrationState"] } : {}),
  };
  const list = useInfiniteQuery(migrations(wanted));
  const filtered = Object.keys(filter).length > 0;
  return (
    <>
      <PageHead title="Migrations" />
      <PageSection>
        <Filters>
          <TextFilter
            label="Only migrations from or to this host"
            placeholder="Host"
            value={filter.host}
            choose={(value) => choose("host", value)}
          />
          <TextFilter
            label="Only migrations with this profile"
            placeholder="Profile"
            value={filter.profile}
            choose={(value) => choose("profile", value)}
          />
          <ChoiceFilter
            label="Only migrations in this state"
            all="In any state"
            choices={MIGRATION_STATES.map((each) => [each, each])}
            value={state}
            choose={(value) => choose("state", value)}
          />
        </Filters>
        <PagedList
          list={list}
          empty={
            filtered ? (
              <Empty title="No migration matches" />
            ) : (
              <Empty title="No migrations yet">Start one on a VM's page.</Empty>
            )
          }
        >
          {(rows) => <MigrationTable migrations={rows} showVm />}
        </PagedList>
      </PageSection>
    </>
  );
}

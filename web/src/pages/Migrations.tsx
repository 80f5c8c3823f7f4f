import { PageSection } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { type MigrationFilter, migrations } from "../api/queries";
import { Empty } from "../components/Async";
import { type Filter, Filters, useFilters } from "../components/Filters";
import { PagedList } from "../components/ListTable";
import { MigrationTable } from "../components/MigrationTable";
import { PageHead } from "../components/PageHead";
import { MIGRATION_STATES } from "../components/StateLabel";

const FILTERS: readonly Filter<keyof MigrationFilter>[] = [
  { name: "host", label: "Only migrations from or to this host", empty: "Host" },
  { name: "profile", label: "Only migrations with this profile", empty: "Profile" },
  {
    name: "state",
    label: "Only migrations in this state",
    empty: "In any state",
    choices: MIGRATION_STATES,
  },
];

export default function Migrations() {
  const [chosen, choose] = useFilters(FILTERS);
  const list = useInfiniteQuery(migrations(chosen as MigrationFilter));
  const filtered = Object.keys(chosen).length > 0;
  return (
    <>
      <PageHead title="Migrations" />
      <PageSection>
        <Filters filters={FILTERS} chosen={chosen} choose={choose} />
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
          {(rows) => <MigrationTable migrations={rows} shown="of several VMs" />}
        </PagedList>
      </PageSection>
    </>
  );
}

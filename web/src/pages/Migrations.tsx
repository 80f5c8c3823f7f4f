import { Button, PageSection } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import type { Schemas } from "../api/client";
import { type MigrationFilter, migrations } from "../api/queries";
import { MIGRATION_STATES } from "../components/labels/StateLabel";
import { Empty } from "../components/layout/Async";
import { ButtonLink } from "../components/layout/ButtonLink";
import { PageHead } from "../components/layout/PageHead";
import { MigrationTable } from "../components/migration/MigrationTable";
import { type Filter, Filters, useFilters, useSorting } from "../components/tables/Filters";
import { PagedList } from "../components/tables/ListTable";

type Name = "search" | "host" | "profile" | "state" | "downtime" | "intent";
const FILTERS: readonly Filter<Name>[] = [
  {
    name: "search",
    label: "Search by VM, host, profile or UUID",
    empty: "VM, host, profile, UUID",
  },
  { name: "host", label: "Only migrations from or to this host", empty: "Host" },
  { name: "profile", label: "Only migrations with this profile", empty: "Profile" },
  {
    name: "state",
    label: "Only migrations in this state",
    empty: "In any state",
    choices: MIGRATION_STATES,
  },
];
/** Set by buttons of their own: two clicks from anywhere. */
const EXCEEDED = { name: "downtime", choices: ["exceeded"] } as const;
const BROKEN = { name: "intent", choices: ["broken"] } as const;
const SORTS: readonly Schemas["MigrationSort"][] = [
  "-created",
  "created",
  "vm",
  "-vm",
  "downtime",
  "-downtime",
  "total_time",
  "-total_time",
];

export default function Migrations() {
  const [chosen, choose] = useFilters<Name>([...FILTERS, EXCEEDED, BROKEN]);
  const sorting = useSorting(SORTS, "-created");
  const { downtime, intent, ...named } = chosen;
  const list = useInfiniteQuery(
    migrations({
      ...(named as MigrationFilter),
      sort: sorting.by,
      ...(downtime ? { downtime_exceeded: true } : {}),
      ...(intent ? { intent_broken: true } : {}),
    }),
  );
  const filtered = Object.keys(chosen).length > 0;
  return (
    <>
      <PageHead
        title="Migrations"
        actions={
          <ButtonLink to="/forecasts" variant="secondary">
            How good forecasts were
          </ButtonLink>
        }
      />
      <PageSection>
        <Filters filters={FILTERS} chosen={chosen} choose={choose}>
          <Button
            variant="secondary"
            onClick={() => choose("downtime", downtime ? "" : "exceeded")}
          >
            {downtime ? "Show any downtime" : "Exceeded their limit"}
          </Button>
          <Button variant="secondary" onClick={() => choose("intent", intent ? "" : "broken")}>
            {intent ? "Show any intent" : "Did not keep their intent"}
          </Button>
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
          {(rows) => <MigrationTable migrations={rows} shown="of several VMs" sorting={sorting} />}
        </PagedList>
      </PageSection>
    </>
  );
}

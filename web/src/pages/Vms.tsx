import { Button, Flex, PageSection } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Link } from "react-router";
import type { Schemas } from "../api/client";
import { vms } from "../api/queries";
import { useToasts } from "../components/dialogs/toasts";
import { Labels } from "../components/labels/Labels";
import { Moment } from "../components/labels/Moment";
import {
  AsOf,
  TUNING_STATES,
  TuningLabel,
  type TuningState,
} from "../components/labels/TuningLabel";
import { Empty } from "../components/layout/Async";
import { PageHead } from "../components/layout/PageHead";
import { Problems } from "../components/layout/Problems";
import { useVerifyAll } from "../components/live/useVerifyAll";
import { VmStanding } from "../components/migration/VmStanding";
import { type Filter, Filters, useFilters, useSorting } from "../components/tables/Filters";
import { type ColumnOf, ListTable, PagedList } from "../components/tables/ListTable";
import { counted } from "../components/text/format";
import type { Chosen } from "./vms/BulkDialog";
import type { Kind } from "./vms/orders";
import { Selected } from "./vms/Selected";
import { useChoice } from "./vms/useChoice";

const BulkDialog = lazy(() => import("./vms/BulkDialog"));

const COLUMNS: readonly ColumnOf<Schemas["VmView"]>[] = [
  {
    title: "Name",
    sort: "name",
    text: "breaks",
    cell: (each) => <Link to={`/vms/${each.uuid}`}>{each.name}</Link>,
  },
  {
    title: "Host",
    sort: "host",
    cell: (each) => <Link to={`/hosts/${each.host}`}>{each.host}</Link>,
  },
  { title: "State", cell: (each) => <Standing vm={each} why /> },
  {
    title: "Tuning",
    sort: "tuning_state",
    text: "short",
    cell: (each) => <TuningLabel state={each.tuning_state} tuning={each.tuning} />,
  },
  { title: "As of", text: "short", cell: (each) => <AsOf tuning={each.tuning} /> },
  { title: "Labels", cell: (each) => <Labels labels={each.labels} /> },
];

/** Its state and its migration; where its host does not answer, since when, and *why* where
 * nothing else tells. */
function Standing({ vm, why }: { vm: Schemas["VmView"]; why: boolean }) {
  return (
    <>
      <VmStanding vm={vm} />
      {vm.unreachable && (
        <>
          {" "}
          host unreachable since <Moment at={vm.unreachable.since} />
          {why && `: ${vm.unreachable.reason}`}
        </>
      )}
    </>
  );
}

/** The columns where the reasons of hosts in *told* are said above the list, once for all VMs. */
function columns(told: ReadonlySet<string>) {
  return COLUMNS.map((each) =>
    each.title === "State"
      ? {
          ...each,
          cell: (vm: Schemas["VmView"]) => <Standing vm={vm} why={!told.has(`hosts.${vm.host}`)} />,
        }
      : each,
  );
}

const SORTS: readonly Schemas["VmSort"][] = [
  "name",
  "-name",
  "host",
  "-host",
  "tuning_state",
  "-tuning_state",
];
const FILTERS: readonly Filter<"search" | "host" | "label" | "tuning">[] = [
  { name: "search", label: "Search by name or UUID", empty: "Name or UUID" },
  { name: "host", label: "Only VMs of this host", empty: "Host" },
  { name: "label", label: "Only VMs with this label", empty: "Label, as in tier=db" },
  {
    name: "tuning",
    label: "Only VMs in this tuning state",
    empty: "Any tuning state",
    choices: TUNING_STATES,
  },
];

export default function Vms() {
  const [chosen, choose] = useFilters(FILTERS);
  const sorting = useSorting(SORTS, "name");
  const { label, tuning, ...named } = chosen;
  const among = { ...named, ...(label ? { label: [label] } : {}) };
  const filter = { ...among, ...(tuning ? { tuning_state: tuning as TuningState } : {}) };
  const list = useInfiniteQuery(vms({ ...filter, sort: sorting.by }));
  const choice = useChoice(JSON.stringify(filter));
  const [bulk, setBulk] = useState<{ kind: Kind; chosen: Chosen } | null>(null);
  const [verifyAll, left] = useVerifyAll();
  const toasts = useToasts();
  const shown = [
    ...new Set((list.data?.pages ?? []).flatMap((page) => page.items.map((each) => each.uuid))),
  ];
  const look = async () => {
    const failed = await verifyAll(shown);
    if (failed === 0) toasts.done("Verified all shown VMs");
    else toasts.failed("Some VMs could not be verified", new Error(`${failed} did not answer`));
  };
  const counts = list.data?.pages[0]?.tuning_counts;
  const problems = list.data?.pages[0]?.problems ?? [];
  const told = new Set(problems.map(({ field }) => field));
  const matching = counts
    ? tuning
      ? (counts[tuning as TuningState] ?? 0)
      : TUNING_STATES.reduce((sum, state) => sum + (counts[state] ?? 0), 0)
    : 0;
  const drifted = counts?.drifted ?? 0;
  const act = (kind: Kind) =>
    setBulk({
      kind,
      chosen: choice.everything ? { filter, count: matching } : { rows: choice.rows },
    });
  const reapply = () => {
    const filter = { ...among, tuning_state: "drifted" as const };
    setBulk({ kind: "apply", chosen: { filter, count: drifted } });
  };
  const filters = FILTERS.map((each) =>
    each.name === "tuning" && counts
      ? {
          ...each,
          choices: TUNING_STATES.map((state) => [state, `${state} (${counts[state]})`] as const),
        }
      : each,
  );
  return (
    <>
      <PageHead
        title="VMs"
        actions={
          <Flex columnGap={{ default: "columnGapSm" }}>
            <Button
              variant="secondary"
              isLoading={left !== null}
              isDisabled={left !== null || shown.length === 0}
              onClick={() => void look()}
            >
              {left === null ? "Verify shown VMs" : `Verifying, ${left} left`}
            </Button>
            {drifted > 0 && (
              <Button onClick={reapply}>Re-apply to {counted(drifted, "drifted VM")}</Button>
            )}
          </Flex>
        }
      >
        The tuning state is as of the last application or verification.
      </PageHead>
      <PageSection>
        <Filters filters={filters} chosen={chosen} choose={choose} />
        {(choice.everything || choice.rows.length > 0) && (
          <Selected
            chosen={choice.rows.length}
            matching={matching}
            everything={choice.everything}
            takeAll={choice.takeAll}
            clear={choice.clear}
            act={act}
          />
        )}
        <Problems problems={problems} />
        <PagedList
          list={list}
          empty={
            Object.keys(chosen).length > 0 ? (
              <Empty title="No VM matches" />
            ) : (
              <Empty title="No VMs yet" action={<Link to="/hosts?do=add">Add a host</Link>}>
                VMs appear when you add their host.
              </Empty>
            )
          }
        >
          {(rows) => (
            <ListTable
              label="VMs"
              columns={columns(told)}
              rows={rows}
              name={(each) => `${each.uuid} ${each.host}`}
              below="grid-lg"
              sorting={sorting}
              choosing={{ ...choice, label: (each) => each.name }}
              to={(each) => `/vms/${each.uuid}`}
              chosen
            />
          )}
        </PagedList>
      </PageSection>
      {bulk && (
        <Suspense fallback={null}>
          <BulkDialog
            {...bulk}
            close={() => {
              setBulk(null);
              choice.clear();
            }}
          />
        </Suspense>
      )}
    </>
  );
}

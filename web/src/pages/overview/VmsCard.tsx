import {
  Button,
  Card,
  CardBody,
  CardHeader,
  CardTitle,
  Flex,
  FlexItem,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { vms } from "../../api/queries";
import { Async, Empty } from "../../components/Async";
import { count } from "../../components/format";
import { type ColumnOf, ListTable, rowsOf } from "../../components/ListTable";
import { Problems } from "../../components/Problems";
import { Labelled } from "../../components/StateLabel";
import {
  AsOf,
  Since,
  TUNING,
  TUNING_STATES,
  TuningLabel,
  type TuningState,
} from "../../components/TuningLabel";
import { useVerifyAll } from "../../components/useVerifyAll";

const SHOWN = 5;
const NEEDS_A_LOOK: readonly TuningState[] = ["drifted", "unknown", "pending restart"];

const COLUMNS: readonly ColumnOf<Schemas["VmView"]>[] = [
  {
    title: "VM",
    text: "breaks",
    cell: (each) => <Link to={`/vms/${each.uuid}`}>{each.name}</Link>,
  },
  {
    title: "Tuning",
    text: "short",
    cell: (each) => <TuningLabel state={each.tuning_state} tuning={each.tuning} />,
  },
  { title: "Differences", text: "breaks", cell: (row) => row.tuning?.differing.join(", ") },
  { title: "Since", text: "short", cell: (each) => <Since tuning={each.tuning} /> },
  { title: "As of", text: "short", cell: (each) => <AsOf tuning={each.tuning} /> },
];

/** Each VM once, from where it runs: a host that it left or is to come to may list it too. */
function each(rows: readonly Schemas["VmView"][]): Schemas["VmView"][] {
  const found = new Map<string, Schemas["VmView"]>();
  for (const row of rows) {
    const runs = row.state === "running" || row.state === "paused";
    if (runs || !found.has(row.uuid)) found.set(row.uuid, row);
  }
  return [...found.values()];
}

/** How many VMs stand how, and those that need a look. */
export function VmsCard() {
  const all = useInfiniteQuery(vms());
  const wrong = NEEDS_A_LOOK.map((tuning_state) => ({ tuning_state }));
  const lists = [
    useInfiniteQuery(vms(wrong[0])),
    useInfiniteQuery(vms(wrong[1])),
    useInfiniteQuery(vms(wrong[2])),
  ];
  const [verifyAll, left] = useVerifyAll();
  const shown = each(lists.flatMap((list) => (list.data ? rowsOf(list.data) : []))).slice(0, SHOWN);
  return (
    <Card>
      <CardHeader
        hasWrap
        actions={{
          actions: (
            <Button
              variant="secondary"
              isLoading={left !== null}
              isDisabled={left !== null || shown.length === 0}
              onClick={() => void verifyAll(shown.map((each) => each.uuid))}
            >
              Verify all
            </Button>
          ),
        }}
      >
        <CardTitle component="h2">VMs</CardTitle>
      </CardHeader>
      <CardBody>
        <Async query={all} lines={2}>
          {(data) => {
            const [first] = data.pages;
            if (first === undefined || first.items.length === 0) {
              return (
                <>
                  <Problems problems={first?.problems ?? []} />
                  <Empty title="No VMs yet">VMs appear when you add their host.</Empty>
                </>
              );
            }
            return (
              <Stack hasGutter>
                <Problems problems={first.problems} />
                <StackItem>
                  <Flex component="ul" aria-label="VMs by tuning state" role="list">
                    {TUNING_STATES.map((state) => (
                      <FlexItem component="li" key={state}>
                        <Link to={`/vms?tuning=${encodeURIComponent(state)}`}>
                          {count(first.tuning_counts[state] ?? 0)}
                        </Link>{" "}
                        <Labelled look={TUNING[state].look}>{state}</Labelled>
                      </FlexItem>
                    ))}
                  </Flex>
                </StackItem>
                {shown.length > 0 && (
                  <StackItem>
                    <ListTable
                      label="VMs that need attention"
                      columns={COLUMNS}
                      rows={shown}
                      name={(each) => `${each.uuid} ${each.host}`}
                    />
                  </StackItem>
                )}
                <StackItem>
                  <Link to="/vms">All VMs</Link>
                </StackItem>
              </Stack>
            );
          }}
        </Async>
      </CardBody>
    </Card>
  );
}

import { Card, CardBody, CardTitle, Stack, StackItem } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { memo } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { migrations } from "../../api/queries";
import { Arriving, useArrivals } from "../../components/Arriving";
import { Async, Empty } from "../../components/Async";
import { way } from "../../components/format";
import { rowsOf } from "../../components/ListTable";
import { MigrationProgress } from "../../components/MigrationProgress";
import { MigrationTable } from "../../components/MigrationTable";
import { useProgress } from "../../components/useProgress";

const SHOWN = 5;
type Migration = Schemas["MigrationView"];

/** What runs now, live, and what ended last. */
export function LiveMigrations() {
  const list = useInfiniteQuery(migrations());
  return (
    <Card>
      <CardTitle component="h2">Migrations</CardTitle>
      <CardBody>
        <Arrivals />
        <Async query={list}>
          {(data) => {
            const items = rowsOf(data);
            if (items.length === 0) {
              return <Empty title="No migrations yet">Start one on a VM's page.</Empty>;
            }
            const running = items.filter((each) => !each.ended);
            const ended = items.filter((each) => each.ended).slice(0, SHOWN);
            return (
              <Stack hasGutter>
                {running.length > 0 ? (
                  <Running migrations={running} />
                ) : (
                  <p>No running migrations.</p>
                )}
                {ended.length > 0 && (
                  <StackItem>
                    <MigrationTable migrations={ended} shown="in short" />
                  </StackItem>
                )}
                <StackItem>
                  <Link to="/migrations">All migrations</Link>
                </StackItem>
              </Stack>
            );
          }}
        </Async>
      </CardBody>
    </Card>
  );
}

/** What others migrate, from when it is announced. */
function Arrivals() {
  return useArrivals().map((each) => <Arriving key={each.vm} arrival={each} />);
}

/** Apart from the rest, which has no reason to be drawn ten times a second. */
function Running({ migrations: running }: { migrations: readonly Migration[] }) {
  const progress = useProgress();
  return (
    <>
      {running.map((each) => (
        <StackItem key={each.id}>
          <One
            id={each.id}
            title={`${each.vm_name}: ${way(each)}`}
            progress={progress.get(each.id)}
          />
        </StackItem>
      ))}
    </>
  );
}

const One = memo(MigrationProgress);

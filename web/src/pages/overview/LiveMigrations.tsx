import { Card, CardBody, CardTitle, Stack, StackItem } from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { memo } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { migrations } from "../../api/queries";
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
                {running.length > 0 ? <Running migrations={running} /> : <p>None runs now.</p>}
                {ended.length > 0 && (
                  <StackItem>
                    <MigrationTable migrations={ended} showVm />
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

/** Apart from the rest, which has no reason to be drawn ten times a second. */
function Running({ migrations: running }: { migrations: readonly Migration[] }) {
  const progress = useProgress();
  return (
    <>
      {running.map((each) => (
        <StackItem key={each.id}>
          <Link to={`/migrations/${each.id}`}>{way(each)}</Link>
          <One title={each.vm_name} progress={progress.get(each.id)} />
        </StackItem>
      ))}
    </>
  );
}

const One = memo(MigrationProgress);

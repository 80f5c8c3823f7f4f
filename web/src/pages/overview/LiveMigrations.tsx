import { Card, CardBody, CardTitle } from "@patternfly/react-core";
import { memo } from "react";
import type { Schemas } from "../../api/client";
import { useProgress } from "../../components/live/useProgress";
import { Arriving, useArrivals } from "../../components/migration/Arriving";
import { MigrationProgress } from "../../components/migration/MigrationProgress";
import { count, way } from "../../components/text/format";

const SHOWN = 30;
type Move = Schemas["MoveView"];

/** The migrations that run or wait, live. */
export function LiveMigrations({ moves }: { moves: readonly Move[] }) {
  const running = moves.filter((each) => each.ended_at === null);
  return (
    <Card isCompact isFullHeight component="section" aria-labelledby="running">
      <CardTitle component="h2" id="running">
        Running migrations{running.length > 0 && ` (${count(running.length)})`}
      </CardTitle>
      <CardBody>
        <Arrivals />
        {running.length === 0 ? (
          <p>No running migrations.</p>
        ) : (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it by that
          <section className="vt-scroll" aria-label="Progress of each" tabIndex={0}>
            <Running migrations={running} />
            {running.length > SHOWN && <p>and {count(running.length - SHOWN)} more</p>}
          </section>
        )}
      </CardBody>
    </Card>
  );
}

/** What others migrate, from when it is announced. */
function Arrivals() {
  return useArrivals().map((each) => <Arriving key={each.vm} arrival={each} />);
}

/** Apart from the rest, which has no reason to be drawn ten times a second. */
function Running({ migrations: running }: { migrations: readonly Move[] }) {
  const progress = useProgress();
  return running
    .slice(0, SHOWN)
    .map((each) => (
      <One
        key={each.id}
        id={each.id}
        title={`${each.vm_name}: ${way(each)}`}
        progress={progress.get(each.id)}
        paused={each.state === "postcopy-paused"}
      />
    ));
}

const One = memo(MigrationProgress);

import { Card, CardBody, CardHeader, CardTitle } from "@patternfly/react-core";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { counted, duration, way } from "../../components/text/format";
import { type Bar, barsOf, type Look, lookOf, type Move, periodOf } from "./timeline";

const LANES = 6;
const KEY: Record<Look, string> = {
  active: "not ended",
  completed: "completed",
  exceeded: "downtime limit exceeded",
  failed: "failed",
  other: "cancelled or unknown",
};
const MARKS = 5;
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

function period(hours: number): string {
  if (hours < 1) return `${hours * 60} minutes`;
  return hours === 1 ? "hour" : `${hours} hours`;
}

/** The migrations of the last hours, with how long each took and its guest stood still. */
export function Timeline({ overview }: { overview: Schemas["OverviewView"] }) {
  const { migrations: moves, cut } = overview;
  const until = Date.parse(overview.at);
  const hours = periodOf(moves, until);
  const since = until - hours * 3_600_000;
  const bars = barsOf(moves, since, until, LANES);
  return (
    <Card isCompact>
      <CardHeader hasWrap actions={{ actions: <Link to="/migrations">All migrations</Link> }}>
        <CardTitle component="h2">Migrations of the last {period(hours)}</CardTitle>
      </CardHeader>
      <CardBody>
        <p>{summary(moves, cut)}</p>
        {/* For the eye and the mouse: the list of migrations has the same for everybody. */}
        <div className="vt-timeline" aria-hidden="true">
          {bars.map((bar) => (
            <Link
              key={bar.move.id}
              to={`/migrations/${bar.move.id}`}
              tabIndex={-1}
              data-look={bar.look}
              title={said(bar)}
              style={{
                insetInlineStart: `${bar.left}%`,
                inlineSize: `${bar.width}%`,
                insetBlockStart: `${bar.lane}rem`,
              }}
            />
          ))}
        </div>
        <div className="vt-axis" aria-hidden="true">
          {Array.from({ length: MARKS }, (_, place) => {
            const at = since + ((until - since) * place) / (MARKS - 1);
            return <span key={at}>{CLOCK.format(at)}</span>;
          })}
        </div>
        {moves.length > 0 && (
          <div className="vt-key">
            {[...new Set(moves.map(lookOf))].map((look) => (
              <span key={look} className={look}>
                {KEY[look]}
              </span>
            ))}
          </div>
        )}
      </CardBody>
    </Card>
  );
}

function summary(moves: readonly Move[], cut: boolean): string {
  if (moves.length === 0) return "None.";
  const of = (look: string) => moves.filter((each) => lookOf(each) === look).length;
  const exceeded = moves.filter((each) => each.exceeded).length;
  const downtimes = moves.flatMap(({ downtime_ms }) => (downtime_ms === null ? [] : [downtime_ms]));
  return [
    `${cut ? "The newest " : ""}${counted(moves.length, "migration")}`,
    ...(of("active") > 0 ? [`${of("active")} not ended`] : []),
    ...(of("failed") > 0 ? [`${of("failed")} failed`] : []),
    ...(exceeded > 0 ? [`${exceeded} exceeded the downtime limit`] : []),
    ...(downtimes.length > 0 ? [`longest downtime ${duration(Math.max(...downtimes))}`] : []),
  ].join(" · ");
}

function said({ move }: Bar): string {
  return [
    `${move.vm_name}: ${way(move)}`,
    move.state,
    ...(move.total_time_ms === null ? [] : [`took ${duration(move.total_time_ms)}`]),
    ...(move.downtime_ms === null
      ? []
      : [`downtime ${duration(move.downtime_ms)}${move.exceeded ? ", limit exceeded" : ""}`]),
  ].join(", ");
}

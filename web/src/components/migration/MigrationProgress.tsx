import { Progress as Bar, ProgressMeasureLocation } from "@patternfly/react-core";
import { Link } from "react-router";
import type { Progress } from "../../api/progress";
import { bytes, duration, percent, unbroken } from "../text/format";
import { rates } from "../text/rates";
import { copying } from "./copying";
import { COMPLETED, expected } from "./outlook";

/**
 * One line of a running migration. Its height never changes, so that nothing jumps.
 *
 * @param id of the migration that its title leads to, if to any.
 * @param paused in post-copy: whatever was told before is over.
 */
export function MigrationProgress({
  id,
  title,
  progress,
  paused = false,
}: {
  id?: string;
  title: string;
  progress: Progress | undefined;
  paused?: boolean;
}) {
  const end = progress ? expected(progress) : null;
  const told = paused
    ? "paused in post-copy: its page says what to do"
    : !progress
      ? "waiting for data"
      : progress.phase === "disks"
        ? copying(progress)
        : progress.status === COMPLETED
          ? end
          : [
              ...(end === null ? [] : [end]),
              `iteration ${progress.iteration}`,
              `${bytes(progress.remaining_bytes)} left`,
              ...rates(progress),
              ...(progress.throttle_percent
                ? [`throttle ${percent(progress.throttle_percent)}`]
                : []),
              ...(progress.expected_downtime_ms === null
                ? []
                : [`downtime ${duration(progress.expected_downtime_ms)} expected`]),
              ...(progress.reaper
                ? [
                    `rings reaped every ${duration(progress.reaper.interval_ms)}, ` +
                      `fullest ${percent(progress.reaper.fullest * 100)}`,
                  ]
                : []),
            ].join(" · ");
  return (
    <>
      {/* Not as the bar's title, which PatternFly hides from screen readers. */}
      {id && <Link to={`/migrations/${id}`}>{title}</Link>}
      <Bar
        {...(id ? { "aria-label": title } : { title })}
        value={Math.round((progress?.share ?? 0) * 100)}
        measureLocation={ProgressMeasureLocation.outside}
        helperText={told && unbroken(told)}
      />
    </>
  );
}

/** Tells a screen reader of each new state and each tenth that was sent, never of each figure. */
export function SpokenProgress({ progress }: { progress: Progress | undefined }) {
  return (
    <span className="pf-v6-screen-reader" role="status">
      {progress &&
        `${progress.phase === "disks" ? "copying disks" : progress.status}, ${
          Math.floor(progress.share * 10) * 10
        } %`}
    </span>
  );
}

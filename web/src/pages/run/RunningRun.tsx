import { Progress, ProgressMeasureLocation } from "@patternfly/react-core";
import type { RunProgress } from "../../api/bench";
import type { Schemas } from "../../api/client";
import { useBenchProgress } from "../../components/live/useBenchProgress";
import { bytes, count } from "../../components/text/format";
import { rates } from "../../components/text/rates";

/** How far a run is. Its height never changes, so that nothing jumps. */
export function RunningRun({ run }: { run: Schemas["RunView"] }) {
  const progress = useBenchProgress<RunProgress>("run", run.id);
  return (
    <Progress
      aria-label={`Run of ${run.scenario}`}
      title={run.state === "queued" ? waiting(run.ahead) : (progress?.phase ?? "starting")}
      value={Math.round((progress?.share ?? 0) * 100)}
      measureLocation={ProgressMeasureLocation.outside}
      helperText={told(progress, run.kind)}
    />
  );
}

function waiting(ahead: number | null): string {
  if (!ahead) return "queued";
  return ahead === 1 ? "queued: one run ahead" : `queued: ${ahead} runs ahead`;
}

function told(progress: RunProgress | null, kind: Schemas["ScenarioKind"]): string {
  if (kind === "boot") return "a boot reports only its marks";
  if (kind === "srcu") return "updates are timed";
  if (kind === "block") {
    return progress?.maps === undefined
      ? "no load yet"
      : `QEMU has ${count(progress.maps)} memory maps · ${bytes(progress.rss_bytes ?? 0)} in memory`;
  }
  if (progress?.iteration === undefined) return "no migration yet";
  return [
    `iteration ${progress.iteration}`,
    ...(progress.remaining_bytes === undefined ? [] : [`${bytes(progress.remaining_bytes)} left`]),
    ...rates(progress),
  ].join(" · ");
}

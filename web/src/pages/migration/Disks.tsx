import {
  Progress as Bar,
  Card,
  CardBody,
  CardTitle,
  HelperText,
  HelperTextItem,
  ProgressMeasureLocation,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import type { CopyProgress } from "../../api/progress";
import { Alert } from "../../components/layout/Alert";
import { behind, copied } from "../../components/migration/copying";
import { about } from "../../components/migration/outlook";
import { duration, rate } from "../../components/text/format";
import { DiskCharts } from "./DiskCharts";

type Record = Pick<Schemas["MigrationView"], "id" | "disks" | "ended">;
type Disk = Record["disks"][number];

/** The disks that are copied with a migration: a bar for each, live while it runs. */
export function Disks({
  record,
  live,
}: {
  record: Record;
  live: readonly CopyProgress[] | undefined;
}) {
  const now = new Map((record.ended ? [] : (live ?? [])).map((each) => [each.target, each]));
  const disks = record.disks.map((disk) => ({
    disk,
    seen: now.get(disk.target) ?? stored(disk, record.ended),
  }));
  return (
    <Card component="section" aria-label="Copied disks">
      <CardTitle component="h2">Copied disks</CardTitle>
      <CardBody>
        <Stack hasGutter>
          {disks.map(({ disk, seen }) => {
            const stuck = record.ended ? null : behind(seen);
            const left = sourceImage(disk);
            return (
              <StackItem key={disk.target}>
                <Bar
                  title={`${disk.target}: ${disk.path}`}
                  value={part(seen)}
                  measureLocation={ProgressMeasureLocation.outside}
                  helperText={said(disk, seen, record.ended)}
                />
                {left && (
                  <HelperText>
                    <HelperTextItem
                      variant={disk.source_image === "unknown" ? "warning" : "default"}
                    >
                      {left}
                    </HelperTextItem>
                  </HelperText>
                )}
                {stuck && <Alert isInline isPlain variant="warning" title={stuck} />}
              </StackItem>
            );
          })}
        </Stack>
        <DiskCharts id={record.id} ended={record.ended} />
      </CardBody>
    </Card>
  );
}

/** What the record says, where no event has come. No look may have seen a short copy catch up. */
function stored(disk: Disk, ended: boolean): CopyProgress {
  const all = disk.total_bytes > 0 && disk.copied_bytes === disk.total_bytes;
  return { ...disk, ready: disk.ready_ms !== null || (ended && all) };
}

/** In percent; all of it only once it has caught up. */
export function part({ copied_bytes, total_bytes, ready }: CopyProgress): number {
  if (ready) return 100;
  return total_bytes > 0 ? Math.min(99, Math.floor((copied_bytes / total_bytes) * 100)) : 0;
}

export function said(disk: Disk, seen: CopyProgress, ended: boolean): string {
  return [
    copied(seen),
    ...(disk.ready_ms === null ? [] : [`after ${duration(disk.ready_ms)}`]),
    ...(ended || seen.left_ms === null || seen.ready ? [] : [`about ${about(seen.left_ms)} left`]),
    ...(ended || seen.written_bytes_per_s === 0
      ? []
      : [`the guest writes ${rate(seen.written_bytes_per_s)}`]),
    ...(disk.created ? ["its image was made for this migration"] : []),
  ].join(" · ");
}

/** What has become of the source's image, and why; null while the migration runs. */
export function sourceImage(disk: Disk): string | null {
  const { source_image: state, source_image_reason: why } = disk;
  if (state === "kept" && !why) return null;
  const what = {
    kept: "is kept",
    removing: "is being removed",
    removed: "was removed",
    unknown: "may be gone",
  }[state];
  return `The source's image ${what}${why ? `: ${why}` : ""}`;
}

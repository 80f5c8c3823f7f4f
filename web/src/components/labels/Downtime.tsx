import { Label } from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { duration } from "../text/format";

type Kept = Pick<Schemas["MigrationView"], "totals" | "downtime_limit_ms" | "downtime_exceeded">;

/** How long the guest stood still; in amber where that was longer than allowed. */
export function Downtime({ migration }: { migration: Kept }) {
  const { totals, downtime_limit_ms: limit, downtime_exceeded: exceeded } = migration;
  if (!totals) return <>–</>;
  const took = duration(totals.downtime_ms);
  if (!exceeded || limit === null) return <>{took}</>;
  return (
    <Label isCompact status="warning">
      {`${took}, limit ${duration(limit)}: exceeded`}
    </Label>
  );
}

import { useQuery } from "@tanstack/react-query";
import type { Needs } from "../../api/progress";
import { migration } from "../../api/queries";
import { ChangeDialog } from "../../components/migration/ChangeDialog";
import { CONTROLS, suggested } from "../../components/migration/controls";
import { useChange } from "../../components/migration/useChange";

const LIMIT = CONTROLS.downtime_limit;

/** Raises the downtime limit of a migration that does not end by itself. */
export default function RaiseLimit({
  id,
  vm,
  needs,
  close,
}: {
  id: string;
  vm: string;
  needs: Needs | null;
  close: () => void;
}) {
  const found = useQuery(migration(id));
  const change = useChange(id, vm);
  if (found.isPending) return null;
  const limit = found.data?.controls.find((each) => each.name === "downtime_limit");
  return (
    <ChangeDialog
      vm={vm}
      control={LIMIT}
      suggestion={suggested(LIMIT, needs, limit?.present_ms ?? null)}
      close={close}
      confirm={(value) => change.mutate({ control: LIMIT, value })}
    />
  );
}

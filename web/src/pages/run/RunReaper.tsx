import { useQuery } from "@tanstack/react-query";
import { runRounds } from "../../api/bench";
import type { Schemas } from "../../api/client";
import { ReaperCard } from "../migration/Reaper";

export function RunReaper({ id, reaper }: { id: string; reaper: Schemas["ReaperView"] }) {
  return <ReaperCard reaper={reaper} rounds={useQuery(runRounds(id))} />;
}

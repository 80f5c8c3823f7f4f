import { useCallback, useState } from "react";
import type { LiveEvent } from "../api/live";
import { type Progress, progressOf } from "../api/progress";
import { useLiveEvents } from "./live";

/** The latest progress of each running migration, by its id. Redraws once a frame at most. */
export function useProgress(only?: string): ReadonlyMap<string, Progress> {
  const [latest, setLatest] = useState<ReadonlyMap<string, Progress>>(new Map());
  const [pending] = useState(() => ({ found: new Map<string, Progress>(), frame: 0 }));
  const take = useCallback(
    (event: LiveEvent) => {
      const progress = progressOf(event);
      if (progress === null || (only !== undefined && event.subject !== only)) return;
      pending.found.set(event.subject, progress);
      if (pending.frame !== 0) return;
      pending.frame = requestAnimationFrame(() => {
        pending.frame = 0;
        const found = new Map(pending.found);
        pending.found.clear();
        setLatest((old) => new Map([...old, ...found]));
      });
    },
    [only, pending],
  );
  useLiveEvents(take);
  return latest;
}

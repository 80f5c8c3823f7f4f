import { useCallback, useEffect, useState } from "react";
import type { LiveEvent } from "../../api/live";
import { type Progress, progressOf } from "../../api/progress";
import { useLiveEvents } from "./live";

const REDRAW_MS = 100; // nobody reads figures that change more often

/** The latest progress of each running migration, by its id. Redraws ten times a second at most. */
export function useProgress(only?: string): ReadonlyMap<string, Progress> {
  const [latest, setLatest] = useState<ReadonlyMap<string, Progress>>(new Map());
  const [pending] = useState(() => ({
    found: new Map<string, Progress>(),
    timer: undefined as ReturnType<typeof setTimeout> | undefined,
  }));
  const take = useCallback(
    (event: LiveEvent) => {
      const progress = progressOf(event);
      if (progress === null || (only !== undefined && event.subject !== only)) return;
      pending.found.set(event.subject, progress);
      pending.timer ??= setTimeout(() => {
        pending.timer = undefined;
        const found = new Map(pending.found);
        pending.found.clear();
        setLatest((old) => new Map([...old, ...found]));
      }, REDRAW_MS);
    },
    [only, pending],
  );
  useEffect(
    () => () => {
      clearTimeout(pending.timer);
      pending.timer = undefined;
    },
    [pending],
  );
  useLiveEvents(take);
  return latest;
}

import { useCallback, useState } from "react";
import { benchProgress } from "../../api/bench";
import type { LiveEvent } from "../../api/live";
import { useLiveEvents } from "./live";

/** The latest progress of one run, campaign or study; null before the first. */
export function useBenchProgress<T>(topic: "run" | "campaign" | "study", id: string): T | null {
  const [latest, setLatest] = useState<{ id: string; progress: T } | null>(null);
  const take = useCallback(
    (event: LiveEvent) => {
      if (event.subject !== id) return;
      const progress = benchProgress<T>(event, topic);
      if (progress !== null) setLatest({ id, progress });
    },
    [topic, id],
  );
  useLiveEvents(take);
  return latest?.id === id ? latest.progress : null;
}

/** The page's event stream: keeps queries fresh, and hands passing progress to who shows it. */
import { useQueryClient } from "@tanstack/react-query";
import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useState,
  useSyncExternalStore,
} from "react";
import { arrivalsAfter } from "../../api/arrivals";
import { type Connection, type LiveEvent, LiveStream, type Topic } from "../../api/live";
import { OF_ALL } from "../../api/overview";
import { arrivals } from "../../api/queries";
import { TOPICS } from "../../api/topics";

const Live = createContext<LiveStream | null>(null);
/** What else an event outdates: a VM shows what was applied to it, and that it migrates. */
const ALSO: Partial<Record<Topic, readonly Topic[]>> = {
  application: ["vm"],
  migration: ["vm"],
};
const GATHER_MS = 150; // a burst of events asks the service once
const OF_ALL_MS = 1_000; // in a fleet something changes all the time

export function LiveProvider({ children }: { children: ReactNode }) {
  const [stream] = useState(() => new LiveStream("/api/v1/events", TOPICS));
  const queries = useQueryClient();
  useEffect(() => {
    const outdated = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const refresh = () => {
      timer = undefined;
      for (const topic of outdated) void queries.invalidateQueries({ queryKey: [topic] });
      outdated.clear();
    };
    let slowly: ReturnType<typeof setTimeout> | undefined;
    const refreshOfAll = () => {
      slowly = undefined;
      for (const queryKey of OF_ALL) void queries.invalidateQueries({ queryKey });
    };
    const stop = stream.listen((event) => {
      if (event.id === null) return; // progress outdates nothing
      queries.setQueryData(arrivals.queryKey, (known = []) => arrivalsAfter(known, event));
      outdated.add(event.topic);
      for (const topic of ALSO[event.topic] ?? []) outdated.add(topic);
      timer ??= setTimeout(refresh, GATHER_MS);
      slowly ??= setTimeout(refreshOfAll, OF_ALL_MS);
    });
    return () => {
      clearTimeout(timer);
      clearTimeout(slowly);
      stop();
    };
  }, [stream, queries]);
  useEffect(() => {
    let lost = false;
    return stream.watch(() => {
      if (stream.connection() === "lost") lost = true;
      else if (stream.connection() === "open" && lost) {
        lost = false;
        void queries.invalidateQueries();
      }
    });
  }, [stream, queries]);
  return <Live.Provider value={stream}>{children}</Live.Provider>;
}

function useStream(): LiveStream {
  const stream = useContext(Live);
  if (stream === null) throw new Error("there is no LiveProvider around this component");
  return stream;
}

/** Whether the service can be heard. */
export function useConnection(): Connection {
  const stream = useStream();
  return useSyncExternalStore(stream.watch, stream.connection);
}

/** Call *take* for each event, progress included. *take* has to be stable (useCallback). */
export function useLiveEvents(take: (event: LiveEvent) => void): void {
  const stream = useStream();
  useEffect(() => stream.listen(take), [stream, take]);
}

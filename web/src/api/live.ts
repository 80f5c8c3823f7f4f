/**
 * The one stream of events of this page, shared by everything on it.
 *
 * Stored changes carry an id, which the browser sends back when it connects again: nothing is
 * missed over a lost connection. Passing progress has none and is not repeated.
 */
import { proven, type Schemas } from "./client";

export type LiveEvent = Schemas["EventView"];
export type Topic = LiveEvent["topic"];
export type Connection = "connecting" | "open" | "lost";

type Listener = (event: LiveEvent) => void;

const RETRY_MS = 2_000;

export class LiveStream {
  private source: EventSource | null = null;
  private state: Connection = "connecting";
  private lastId: string | null = null;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private readonly listeners = new Set<Listener>();
  private readonly watchers = new Set<() => void>();

  constructor(
    private readonly url: string,
    private readonly topics: readonly string[],
    private readonly open: (url: string) => EventSource = (url) => new EventSource(proven(url)),
  ) {}

  /** Hear every event until the returned function is called. */
  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    this.connect();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.close();
    };
  }

  /** For useSyncExternalStore: be told when {@link connection} changes. */
  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  connection = (): Connection => this.state;

  private connect(): void {
    if (this.source !== null) return;
    const url = this.lastId === null ? this.url : `${this.url}?after=${this.lastId}`;
    const source = this.open(url);
    this.source = source;
    source.onopen = () => this.become("open");
    source.onerror = () => {
      this.become("lost");
      // The browser gives up on an answer that is no stream, a 502 of a proxy for example.
      if (source.readyState === EventSource.CLOSED) this.again();
    };
    for (const topic of this.topics) source.addEventListener(topic, (event) => this.take(event));
  }

  private take(message: MessageEvent<string>): void {
    if (message.lastEventId) this.lastId = message.lastEventId;
    const event = JSON.parse(message.data) as LiveEvent;
    for (const listener of this.listeners) listener(event);
  }

  private again(): void {
    this.source?.close();
    this.source = null;
    clearTimeout(this.retry);
    this.retry = setTimeout(() => {
      if (this.listeners.size > 0) this.connect();
    }, RETRY_MS);
  }

  private close(): void {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
    this.state = "connecting";
  }

  private become(state: Connection): void {
    if (state === this.state) return;
    this.state = state;
    for (const watcher of this.watchers) watcher();
  }
}

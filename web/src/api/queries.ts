/** What pages ask the service for. A key's first word is the event topic that outdates it. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { Arrival } from "./arrivals";
import { body, client, proven, type Schemas } from "./client";

const PAGE = 50;

/** Options of a list that is fetched page by page: its `next` is passed on as `after`. */
export function pages<T extends { next: string | null }>(
  queryKey: readonly unknown[],
  fetchPage: (query: { limit: number; after?: string }) => Promise<T>,
) {
  return infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam }) =>
      fetchPage(pageParam === null ? { limit: PAGE } : { limit: PAGE, after: pageParam }),
    initialPageParam: null as string | null,
    getNextPageParam: (page: T) => page.next,
  });
}

export const health = queryOptions({
  queryKey: ["health"],
  queryFn: () => body(client.GET("/api/v1/health")),
});

export const session = queryOptions({
  queryKey: ["session"],
  queryFn: () => body(client.GET("/api/v1/session")),
});

export const hosts = pages(["host", "list"], (query) =>
  body(client.GET("/api/v1/hosts", { params: { query } })),
);

export interface HostFilter {
  /** A part of the name or URI. */
  search?: string;
  state?: Schemas["HostState"];
  maintenance?: boolean;
  sort?: Schemas["HostSort"];
}

export const hostsFound = (filter: HostFilter) =>
  pages(["host", "list", filter], (query) =>
    body(client.GET("/api/v1/hosts", { params: { query: { ...filter, ...query } } })),
  );

export const host = (name: string) =>
  queryOptions({
    queryKey: ["host", "one", name],
    queryFn: () => body(client.GET("/api/v1/hosts/{name}", { params: { path: { name } } })),
  });

export interface VmFilter {
  host?: string;
  search?: string;
  state?: Schemas["VmState"];
  sort?: Schemas["VmSort"];
  label?: string[];
  tuning_state?: Schemas["TuningState"];
}

export const vms = (filter: VmFilter = {}) =>
  pages(["vm", "list", filter], (query) =>
    body(client.GET("/api/v1/vms", { params: { query: { ...filter, ...query } } })),
  );

export const vm = (uuid: string) =>
  queryOptions({
    queryKey: ["vm", "one", uuid],
    queryFn: () => body(client.GET("/api/v1/vms/{vm}", { params: { path: { vm: uuid } } })),
  });

/** A VM as it was last seen, whether or not its host answers; null where it was never listed. */
export const vmLastSeen = (uuid: string) =>
  queryOptions({
    queryKey: ["vm", "seen", uuid],
    queryFn: () =>
      body(client.GET("/api/v1/vms", { params: { query: { search: uuid, limit: 1 } } })).then(
        (page) => page.items.find((each) => each.uuid === uuid) ?? null,
      ),
  });

export const explanation = (uuid: string) =>
  queryOptions({
    queryKey: ["assignment", "explanation", uuid],
    queryFn: () => body(client.GET("/api/v1/vms/{vm}/explain", { params: { path: { vm: uuid } } })),
  });

export const applications = (filter: { vm?: string } = {}) =>
  pages(["application", "list", filter], (query) =>
    body(client.GET("/api/v1/applications", { params: { query: { ...filter, ...query } } })),
  );

export const profiles = pages(["profile", "list"], (query) =>
  body(client.GET("/api/v1/profiles", { params: { query } })),
);

/** Profiles whose name or description has *contains* in it. */
export const profilesFound = (contains: string) =>
  pages(["profile", "list", contains], (query) =>
    body(client.GET("/api/v1/profiles", { params: { query: { contains, ...query } } })),
  );

export const profile = (name: string) =>
  queryOptions({
    queryKey: ["profile", "one", name],
    queryFn: () => body(client.GET("/api/v1/profiles/{name}", { params: { path: { name } } })),
  });

export const revisions = (name: string) =>
  pages(["profile", "revisions", name], (query) =>
    body(client.GET("/api/v1/profiles/{name}/revisions", { params: { path: { name }, query } })),
  );

export const assignments = (profile: string) =>
  pages(["assignment", "list", profile], (query) =>
    body(client.GET("/api/v1/assignments", { params: { query: { profile, ...query } } })),
  );

/** The whole table of tunables: it changes only with the service's version. */
export const tunables = queryOptions({
  queryKey: ["tunables"],
  queryFn: async () => {
    const found: Schemas["TunableView"][] = [];
    let after: string | null = null;
    do {
      const query: { limit: number; after?: string } = { limit: 200 };
      if (after !== null) query.after = after;
      const page: Schemas["TunablePage"] = await body(
        client.GET("/api/v1/tunables", { params: { query } }),
      );
      found.push(...page.items);
      after = page.next;
    } while (after !== null);
    return found;
  },
  staleTime: Number.POSITIVE_INFINITY,
});

export interface MigrationFilter {
  vm?: string;
  host?: string;
  profile?: string;
  state?: Schemas["MigrationState"];
  search?: string;
  downtime_exceeded?: boolean;
  intent_broken?: boolean;
  sort?: Schemas["MigrationSort"];
}

export const migrations = (filter: MigrationFilter = {}) =>
  pages(["migration", "list", filter], (query) =>
    body(client.GET("/api/v1/migrations", { params: { query: { ...filter, ...query } } })),
  );

export const migration = (id: string) =>
  queryOptions({
    queryKey: ["migration", "one", id],
    queryFn: () =>
      body(client.GET("/api/v1/migrations/{migration}", { params: { path: { migration: id } } })),
  });

const MAX_A_PAGE = 10_000; // what the service gives at once, at most

/** Every item of a series in time. Fetched anew, it only asks for what came since. */
function series<T extends { at_ms: number }>(
  queryKey: readonly unknown[],
  fetchPage: (query: { limit: number; after?: string; later_than_ms?: number }) => Promise<{
    items: T[];
    next: string | null;
  }>,
) {
  return queryOptions({
    queryKey,
    queryFn: async ({ client: cache, queryKey: key }) => {
      const before = cache.getQueryData<T[]>(key) ?? [];
      const last = before.at(-1)?.at_ms;
      const since = last === undefined ? {} : { later_than_ms: last };
      const came: T[] = [];
      let after: string | null = null;
      do {
        const page: { items: T[]; next: string | null } = await fetchPage({
          limit: MAX_A_PAGE,
          ...since,
          ...(after === null ? {} : { after }),
        });
        for (const item of page.items) came.push(item);
        after = page.next;
      } while (after !== null);
      // The same array where nothing came: nothing is drawn again then.
      return came.length === 0 && last !== undefined ? before : [...before, ...came];
    },
    structuralSharing: false,
  });
}

export const samples = (id: string) =>
  series(["migration", "samples", id], (query) =>
    body(
      client.GET("/api/v1/migrations/{migration}/samples", {
        params: { path: { migration: id }, query },
      }),
    ),
  );

export const diskSamples = (id: string) =>
  series(["migration", "disk-samples", id], (query) =>
    body(
      client.GET("/api/v1/migrations/{migration}/disk-samples", {
        params: { path: { migration: id }, query },
      }),
    ),
  );

export const rounds = (id: string) =>
  series(["migration", "rounds", id], (query) =>
    body(
      client.GET("/api/v1/migrations/{migration}/rounds", {
        params: { path: { migration: id }, query },
      }),
    ),
  );

export interface AuditFilter {
  actor?: string;
  action?: string;
  outcome?: Schemas["Outcome"];
  about?: string;
  since?: string;
  until?: string;
}

/** What any change is noted in: no event tells of new entries. */
export const audit = (filter: AuditFilter, sort: Schemas["AuditSort"]) =>
  pages(["audit", filter, sort], (query) =>
    body(client.GET("/api/v1/audit", { params: { query: { ...filter, sort, ...query } } })),
  );

/** Where the whole log can be fetched from, of what *filter* lets through. */
export const auditExport = (filter: AuditFilter, form: "csv" | "jsonl"): string =>
  proven(`/api/v1/audit/export?${new URLSearchParams({ ...filter, form })}`);

/** Whether each entry follows from the one before. Reads the whole log: only when asked. */
export const integrity = queryOptions({
  queryKey: ["integrity"],
  queryFn: () => body(client.GET("/api/v1/audit/integrity")),
  staleTime: Number.POSITIVE_INFINITY,
  enabled: false,
});

export const tokens = pages(["token", "list"], (query) =>
  body(client.GET("/api/v1/tokens", { params: { query } })),
);

export const browsers = pages(["browser", "list"], (query) =>
  body(client.GET("/api/v1/browsers", { params: { query } })),
);

/** Nobody can be asked for it: the event stream tells it while the page is open. */
export const arrivals = queryOptions({
  queryKey: ["arrivals"],
  queryFn: () => [] as readonly Arrival[],
  initialData: [],
  enabled: false,
});

/** All at once: there are few. */
export const webhooks = queryOptions({
  queryKey: ["webhook", "list"],
  queryFn: () => body(client.GET("/api/v1/webhooks")),
});

const DELIVERIES_MS = 2_000;

/** Newest first. No event tells of an attempt, so they are read again and again. */
export const deliveries = (webhook: string) => ({
  ...pages(["webhook", "deliveries", webhook], (query) =>
    body(
      client.GET("/api/v1/webhooks/{webhook}/deliveries", {
        params: { path: { webhook }, query },
      }),
    ),
  ),
  refetchInterval: DELIVERIES_MS,
});

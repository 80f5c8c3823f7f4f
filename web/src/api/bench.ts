/** The benchmark's side of the service: what pages ask it for, and what they ask it to do. */
import { queryOptions } from "@tanstack/react-query";
import { body, client, proven, type Schemas } from "./client";
import type { LiveEvent } from "./live";
import { pages } from "./queries";

const MAX_A_PAGE = 1000;

export type ScenarioFilter = { quick: boolean; testbed: Schemas["Testbed"]; qemu: string };

export const scenarios = (filter: ScenarioFilter) =>
  queryOptions({
    queryKey: ["scenarios", "list", filter],
    queryFn: () =>
      all((query) =>
        body(client.GET("/api/v1/scenarios", { params: { query: { ...filter, ...query } } })),
      ),
  });

export const scenario = (
  family: string,
  variant: string,
  testbed: Schemas["Testbed"],
  qemu: string,
) =>
  queryOptions({
    queryKey: ["scenarios", "one", family, variant, testbed, qemu],
    queryFn: () =>
      body(
        client.GET("/api/v1/scenarios/{family}/{variant}", {
          params: { path: { family, variant }, query: { testbed, qemu } },
        }),
      ),
  });

/** Scenarios that runs were made of: new runs may add one. */
export const measuredScenarios = pages(["run", "scenarios"], (query) =>
  body(client.GET("/api/v1/measured-scenarios", { params: { query } })),
);

/** The table of metrics changes only with the service's version. */
export const metrics = queryOptions({
  queryKey: ["metrics"],
  queryFn: () => all((query) => body(client.GET("/api/v1/run-metrics", { params: { query } }))),
  staleTime: Number.POSITIVE_INFINITY,
});

export const qemus = queryOptions({
  queryKey: ["qemus"],
  queryFn: () => all((query) => body(client.GET("/api/v1/qemus", { params: { query } }))),
});

export interface RunFilter {
  scenario?: string;
  family?: string;
  profile?: string;
  state?: Schemas["RunState"][];
  fingerprint?: string;
  host?: string;
  campaign?: string;
  arm?: string;
  since?: string;
  /** A part of the scenario's name, the arm's or the profile's, or the UUID's beginning. */
  search?: string;
}

export const runs = (filter: RunFilter = {}) =>
  pages(["run", "list", filter], (query) =>
    body(client.GET("/api/v1/runs", { params: { query: { ...filter, ...query } } })),
  );

export const run = (id: string) =>
  queryOptions({
    queryKey: ["run", "one", id],
    queryFn: () => body(client.GET("/api/v1/runs/{run}", { params: { path: { run: id } } })),
  });

/** A run's series are there when it has ended, and never change. */
const once = { staleTime: Number.POSITIVE_INFINITY, structuralSharing: false } as const;

export const runSamples = (id: string) =>
  queryOptions({
    ...once,
    queryKey: ["run-samples", id],
    queryFn: () =>
      all(
        (query) =>
          body(client.GET("/api/v1/runs/{run}/samples", { params: { path: { run: id }, query } })),
        MAX_A_PAGE,
      ),
  });

export const runPasses = (id: string) =>
  queryOptions({
    ...once,
    queryKey: ["run-passes", id],
    queryFn: () =>
      all(
        (query) =>
          body(client.GET("/api/v1/runs/{run}/passes", { params: { path: { run: id }, query } })),
        MAX_A_PAGE,
      ),
  });

export const runProcesses = (id: string) =>
  queryOptions({
    ...once,
    queryKey: ["run-processes", id],
    queryFn: () =>
      all(
        (query) =>
          body(
            client.GET("/api/v1/runs/{run}/processes", { params: { path: { run: id }, query } }),
          ),
        MAX_A_PAGE,
      ),
  });

export const runRounds = (id: string) =>
  queryOptions({
    ...once,
    queryKey: ["run-rounds", id],
    queryFn: () =>
      all(
        (query) =>
          body(client.GET("/api/v1/runs/{run}/rounds", { params: { path: { run: id }, query } })),
        MAX_A_PAGE,
      ),
  });

interface CampaignFilter {
  name?: string;
  /** A part of the name, or the UUID's beginning. */
  search?: string;
  state?: Schemas["CampaignState"][];
}

export const campaigns = (filter: CampaignFilter = {}) =>
  pages(["campaign", "list", filter], (query) =>
    body(client.GET("/api/v1/campaigns", { params: { query: { ...filter, ...query } } })),
  );

export const campaign = (id: string) =>
  queryOptions({
    queryKey: ["campaign", "one", id],
    queryFn: () =>
      body(client.GET("/api/v1/campaigns/{campaign}", { params: { path: { campaign: id } } })),
  });

/** Where each of a campaign's runs stands: outdated by runs, not by the campaign. */
export const campaignPlan = (id: string) =>
  pages(["run", "plan", id], (query) =>
    body(
      client.GET("/api/v1/campaigns/{campaign}/plan", {
        params: { path: { campaign: id }, query: { ...query, limit: MAX_A_PAGE } },
      }),
    ),
  );

export interface Asked {
  a?: string;
  b?: string;
  campaign?: string;
  metric?: string[];
  margin_percent?: number;
  expected?: string[];
  reference?: string;
}

/** A campaign's end outdates it; what is chosen by filters stays until it is asked anew. */
export const comparison = (asked: Asked) =>
  queryOptions({
    queryKey: ["campaign", "comparison", asked],
    queryFn: () => body(client.GET("/api/v1/comparisons", { params: { query: { ...asked } } })),
    staleTime: 60_000,
  });

export const references = queryOptions({
  queryKey: ["reference", "list"],
  queryFn: () => all((query) => body(client.GET("/api/v1/reference", { params: { query } }))),
  staleTime: Number.POSITIVE_INFINITY,
});

export const reference = (id: string) =>
  queryOptions({
    queryKey: ["reference", "one", id],
    queryFn: () => body(client.GET("/api/v1/reference/{id}", { params: { path: { id } } })),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const startRun = (what: Schemas["RunCreate"]) =>
  body(client.POST("/api/v1/runs", { body: what }));

export const cancelRun = (id: string) =>
  body(client.DELETE("/api/v1/runs/{run}", { params: { path: { run: id } } }));

export const foreseeCampaign = (plan: Record<string, unknown>) =>
  body(client.POST("/api/v1/campaigns/forecast", { body: plan }));

export const startCampaign = (plan: Record<string, unknown>) =>
  body(client.POST("/api/v1/campaigns", { body: plan }));

const which = (campaign: string) => ({ params: { path: { campaign } } });

export const pauseCampaign = (id: string) =>
  body(client.POST("/api/v1/campaigns/{campaign}/pause", which(id)));

export const resumeCampaign = (id: string) =>
  body(client.POST("/api/v1/campaigns/{campaign}/resume", which(id)));

export const cancelCampaign = (id: string) =>
  body(client.DELETE("/api/v1/campaigns/{campaign}", which(id)));

/** Where a run can be downloaded as a file. */
export const runFile = (id: string, format: "json" | "csv.gz" | "guestperf") =>
  proven(`/api/v1/runs/${id}/export?format=${format}`);

export const runPlot = (id: string) => proven(`/api/v1/runs/${id}/plot`);

/** Where a comparison can be had as a file. */
export function comparisonFile(asked: Asked, format: "html" | "markdown" | "csv" | "json"): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) {
    for (const each of [value].flat()) query.append(name, String(each));
  }
  if (format === "json") return proven(`/api/v1/comparisons?${query}`);
  query.append("format", format);
  return proven(`/api/v1/comparisons/report?${query}`);
}

/** Passing progress of a run: the share done, and the migration's own figures while there is one. */
export interface RunProgress {
  share: number;
  phase: string;
  at_ms: number;
  iteration?: number;
  remaining_bytes?: number;
  /** These are null until QEMU has measured them. */
  dirty_bytes_per_s?: number | null;
  throughput_bytes_per_s?: number | null;
  maps?: number;
  rss_bytes?: number;
}

/** Passing progress of a campaign, told each second. */
export interface CampaignProgress {
  share: number;
  done: number;
  total: number;
  remaining_s: number;
  block: number;
  arm: string;
  cell: string;
}

/** The progress that *event* carries of its topic's things; null where it is a stored change. */
export function benchProgress<T>(event: LiveEvent, topic: "run" | "campaign" | "study"): T | null {
  if (event.topic !== topic || event.id !== null) return null;
  return typeof event.data.share === "number" ? (event.data as T) : null;
}

/** Every item of a list whose whole is wanted. */
async function all<T>(
  fetchPage: (query: { limit: number; after?: string }) => Promise<{
    items: T[];
    next: string | null;
  }>,
  limit = 200,
): Promise<T[]> {
  const found: T[] = [];
  let after: string | null = null;
  do {
    const page: { items: T[]; next: string | null } = await fetchPage(
      after === null ? { limit } : { limit, after },
    );
    found.push(...page.items);
    after = page.next;
  } while (after !== null);
  return found;
}

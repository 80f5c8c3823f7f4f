/** The fleet at a glance, what is done in it, and one search over all of it. */
import { queryOptions } from "@tanstack/react-query";
import { body, client } from "./client";

export const overview = queryOptions({
  queryKey: ["overview"],
  queryFn: () => body(client.GET("/api/v1/overview")),
});

export const activity = queryOptions({
  queryKey: ["activity"],
  queryFn: () => body(client.GET("/api/v1/activity", { params: { query: { limit: 30 } } })),
});

export const search = (q: string) =>
  queryOptions({
    queryKey: ["search", q],
    queryFn: () => body(client.GET("/api/v1/search", { params: { query: { q } } })),
    enabled: q !== "",
    gcTime: 60_000,
  });

/** These tell of everything: any stored change outdates them, at most once a second. */
export const OF_ALL = [overview.queryKey, activity.queryKey] as const;

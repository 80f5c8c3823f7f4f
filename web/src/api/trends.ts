/** Metrics over time: histories, the changes that were found in them, and schedules. */
import { queryOptions } from "@tanstack/react-query";
import { body, client, proven, type Schemas } from "./client";
import { pages } from "./queries";

export type SetupHistory = Schemas["SetupHistoryView"];
export type FoundChange = Schemas["FoundChangeView"];
export type Triage = Schemas["Triage"];

export interface HistoryAsked {
  scenario: string;
  metric: string;
}

export const history = (asked: HistoryAsked) =>
  pages(["run", "history", asked], (query) =>
    body(client.GET("/api/v1/history", { params: { query: { ...asked, ...query, limit: 5 } } })),
  );

export const changes = (triage: Triage[]) =>
  queryOptions({
    queryKey: ["run", "changes", triage],
    queryFn: () =>
      body(client.GET("/api/v1/changes", { params: { query: { triage, limit: 500 } } })),
  });

export const schedules = queryOptions({
  queryKey: ["campaign", "schedules"],
  queryFn: () => body(client.GET("/api/v1/schedules")),
});

export const triageChange = (id: string, triage: Triage, note: string) =>
  body(
    client.PUT("/api/v1/changes/{change}/triage", {
      params: { path: { change: id } },
      body: { triage, note },
    }),
  );

/** Where the history of one setup can be had as CSV. */
export const historyFile = (asked: HistoryAsked, setup: string) =>
  proven(`/api/v1/history/export?${new URLSearchParams({ ...asked, setup })}`);

/** Forecasts that are kept with their migrations, and how good they were. */
import { queryOptions } from "@tanstack/react-query";
import { body, client } from "./client";

export const migrationForecasts = (id: string) =>
  queryOptions({
    queryKey: ["migration", "forecasts", id],
    queryFn: () =>
      body(
        client.GET("/api/v1/migrations/{migration}/forecasts", {
          params: { path: { migration: id } },
        }),
      ),
  });

export interface CheckFilter {
  profile?: string;
  host?: string;
  since?: string;
}

export const forecastCheck = (filter: CheckFilter) =>
  queryOptions({
    queryKey: ["migration", "forecast check", filter],
    queryFn: () => body(client.GET("/api/v1/forecasts/check", { params: { query: filter } })),
  });

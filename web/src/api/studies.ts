/** Studies: the search for better settings, and the proof of them. */
import { queryOptions } from "@tanstack/react-query";
import { body, client, type Schemas } from "./client";
import { pages } from "./queries";

export const studies = (filter: { search?: string; state?: Schemas["StudyState"][] } = {}) =>
  pages(["study", "list", filter], (query) =>
    body(client.GET("/api/v1/studies", { params: { query: { ...filter, ...query } } })),
  );

export const study = (id: string) =>
  queryOptions({
    queryKey: ["study", "one", id],
    queryFn: () => body(client.GET("/api/v1/studies/{study}", which(id))),
  });

/** What a study has tried: outdated by each of its trials. */
export const trials = (id: string) =>
  pages(["study", "trials", id], (query) =>
    body(client.GET("/api/v1/studies/{study}/trials", { params: { path: { study: id }, query } })),
  );

/** What its trials say so far: outdated likewise. */
export const analysis = (id: string) =>
  queryOptions({
    queryKey: ["study", "analysis", id],
    queryFn: () => body(client.GET("/api/v1/studies/{study}/analysis", which(id))),
  });

const which = (study: string) => ({ params: { path: { study } } });

export const pauseStudy = (id: string) =>
  body(client.POST("/api/v1/studies/{study}/pause", which(id)));

export const resumeStudy = (id: string) =>
  body(client.POST("/api/v1/studies/{study}/resume", which(id)));

export const cancelStudy = (id: string) =>
  body(client.DELETE("/api/v1/studies/{study}", which(id)));

/** Passing progress of a study, told each second. */
export interface StudyProgress {
  share: number;
  waits?: string;
  phase?: "searching" | "confirming";
  block?: number;
  trial?: number;
  origin?: string;
  done?: number;
  total?: number;
}

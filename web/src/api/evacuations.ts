/** Evacuations: what pages ask the service for, and what they ask it to do. */
import { queryOptions } from "@tanstack/react-query";
import { body, client, type Schemas } from "./client";
import type { LiveEvent } from "./live";
import { pages } from "./queries";

export type Asked = Partial<Schemas["EvacuationCreate"]>;

const whole = (asked: Asked) => asked as Schemas["EvacuationCreate"];

export const evacuationsOf = (name: string) =>
  pages(["evacuation", "list", name], (query) =>
    body(client.GET("/api/v1/hosts/{name}/evacuations", { params: { path: { name }, query } })),
  );

export const evacuation = (name: string, id: string) =>
  queryOptions({
    queryKey: ["evacuation", "one", name, id],
    queryFn: () =>
      body(
        client.GET("/api/v1/hosts/{name}/evacuations/{evacuation}", {
          params: { path: { name, evacuation: id } },
        }),
      ),
  });

export const leavingVms = (name: string, id: string) =>
  pages(["evacuation", "vms", name, id], (query) =>
    body(
      client.GET("/api/v1/hosts/{name}/evacuations/{evacuation}/vms", {
        params: { path: { name, evacuation: id }, query },
      }),
    ),
  );

/** A preflight of every VM: made anew whenever something else is asked. */
export const evacuationPlan = (name: string, asked: Asked) =>
  queryOptions({
    queryKey: ["evacuation-plan", name, asked],
    queryFn: () =>
      body(
        client.POST("/api/v1/hosts/{name}/evacuations/plan", {
          params: { path: { name } },
          body: whole(asked),
        }),
      ),
    gcTime: 0,
  });

export const startEvacuation = (name: string, asked: Asked) =>
  body(
    client.POST("/api/v1/hosts/{name}/evacuations", {
      params: { path: { name } },
      body: whole(asked),
    }),
  );

export const changeEvacuation = (name: string, id: string, what: "pause" | "resume" | "cancel") => {
  const params = { params: { path: { name, evacuation: id } } };
  if (what === "cancel")
    return body(client.DELETE("/api/v1/hosts/{name}/evacuations/{evacuation}", params));
  return body(
    what === "pause"
      ? client.POST("/api/v1/hosts/{name}/evacuations/{evacuation}/pause", params)
      : client.POST("/api/v1/hosts/{name}/evacuations/{evacuation}/resume", params),
  );
};

/** How far an evacuation is: told each second while it runs. */
export interface EvacuationProgress {
  share: number;
  moved: number;
  finished: number;
  total: number;
  remaining_s: number | null;
  /** Of each VM that is under way, by UUID, how far it is. */
  vms: Record<string, number>;
}

/** The progress that *event* carries; null where it is something else. */
export function evacuationProgress(event: LiveEvent, id: string): EvacuationProgress | null {
  if (event.topic !== "evacuation" || event.id !== null || event.subject !== id) return null;
  return typeof event.data.share === "number"
    ? (event.data as unknown as EvacuationProgress)
    : null;
}

/** What pages ask the service to do about hosts. */
import { queryOptions } from "@tanstack/react-query";
import { body, client, type Schemas } from "./client";

/** Connects to the host first; refused with the reason where that fails. */
export const addHost = (what: Schemas["HostCreate"]) =>
  body(client.POST("/api/v1/hosts", { body: what }));

/** An empty text unsets an address. */
export const changeHost = (name: string, what: Schemas["HostChange"]) =>
  body(client.PATCH("/api/v1/hosts/{name}", { params: { path: { name } }, body: what }));

export const removeHost = (name: string) =>
  body(client.DELETE("/api/v1/hosts/{name}", { params: { path: { name } } }));

export const setMaintenance = (name: string, on: boolean) =>
  body(
    client.PUT("/api/v1/hosts/{name}/maintenance", { params: { path: { name } }, body: { on } }),
  );

/** Tries what a migration needs of *name*, or of the way from it *to* another host. */
export const hostCheck = (name: string, to: string) =>
  queryOptions({
    queryKey: ["host-check", name, to],
    queryFn: () =>
      body(
        client.GET("/api/v1/hosts/{name}/check", {
          params: { path: { name }, query: to ? { to } : {} },
        }),
      ),
    gcTime: 0,
    retry: false,
  });

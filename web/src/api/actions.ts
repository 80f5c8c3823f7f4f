/** What pages ask the service to do. Each returns the service's answer or throws an ApiError. */
import { body, client, type Schemas } from "./client";

export const planVm = (vm: string, what: Schemas["PlanCreate"]) =>
  body(client.POST("/api/v1/vms/{vm}/plan", { params: { path: { vm } }, body: what }));

export const applyTo = (vm: string, what: Schemas["ApplicationCreate"]) =>
  body(client.POST("/api/v1/vms/{vm}/applications", { params: { path: { vm } }, body: what }));

export const verifyVm = (vm: string) =>
  body(client.POST("/api/v1/vms/{vm}/verify", { params: { path: { vm } } }));

export const revertApplication = (application: string) =>
  body(
    client.POST("/api/v1/applications/{application}/revert", {
      params: { path: { application } },
    }),
  );

export const startMigration = (what: Schemas["MigrationCreate"]) =>
  body(client.POST("/api/v1/migrations", { body: what }));

export const abortMigration = (migration: string) =>
  body(client.DELETE("/api/v1/migrations/{migration}", { params: { path: { migration } } }));

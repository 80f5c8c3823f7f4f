/** What pages ask the service to do. Each returns the service's answer or throws an ApiError. */
import { body, client, type Schemas } from "./client";

/** What the service has a default for may be left out; the generated types say it may not. */
type Asked<Body, Needed extends keyof Body = never> = Partial<Body> & Pick<Body, Needed>;

export const planVm = (vm: string, what: Asked<Schemas["PlanCreate"]>) =>
  body(
    client.POST("/api/v1/vms/{vm}/plan", {
      params: { path: { vm } },
      body: what as Schemas["PlanCreate"],
    }),
  );

export const applyTo = (vm: string, what: Asked<Schemas["ApplicationCreate"]>) =>
  body(
    client.POST("/api/v1/vms/{vm}/applications", {
      params: { path: { vm } },
      body: what as Schemas["ApplicationCreate"],
    }),
  );

export const verifyVm = (vm: string) =>
  body(client.POST("/api/v1/vms/{vm}/verify", { params: { path: { vm } } }));

export const revertApplication = (application: string) =>
  body(
    client.POST("/api/v1/applications/{application}/revert", {
      params: { path: { application } },
    }),
  );

/** Measures the VM for some 20 s where that was not done lately. */
export const forecastVm = (
  vm: string,
  what: Asked<Schemas["MigrationForecastCreate"], "destination">,
) =>
  body(
    client.POST("/api/v1/vms/{vm}/forecasts", {
      params: { path: { vm } },
      body: what as Schemas["MigrationForecastCreate"],
    }),
  );

export const startMigration = (what: Asked<Schemas["MigrationCreate"], "vm" | "destination">) =>
  body(client.POST("/api/v1/migrations", { body: what as Schemas["MigrationCreate"] }));

export const abortMigration = (migration: string) =>
  body(client.DELETE("/api/v1/migrations/{migration}", { params: { path: { migration } } }));

/** Values as people write them, by tunable; set now, while it runs. */
export const changeMigration = (migration: string, values: Schemas["MigrationChange"]["values"]) =>
  body(
    client.PATCH("/api/v1/migrations/{migration}", {
      params: { path: { migration } },
      body: { values },
    }),
  );

/** Done at once; recorded like a step. */
export const doWithMigration = (
  migration: string,
  what: NonNullable<Schemas["MigrationChange"]["do"]>,
) =>
  body(
    client.PATCH("/api/v1/migrations/{migration}", {
      params: { path: { migration } },
      body: { values: {}, do: what },
    }),
  );

/** Answers once the migration goes on. *address* is empty for the destination's usual one. */
export const recoverMigration = (migration: string, address: string) =>
  body(
    client.POST("/api/v1/migrations/{migration}/recovery", {
      params: { path: { migration } },
      body: { address },
    }),
  );

export const createProfile = (what: Schemas["ProfileCreate"]) =>
  body(client.POST("/api/v1/profiles", { body: what }));

/** Refused with 412 when somebody else has changed it since *revision*. */
export const replaceProfile = (name: string, revision: number, what: Schemas["ProfileReplace"]) =>
  body(
    client.PUT("/api/v1/profiles/{name}", {
      params: { path: { name }, header: { "If-Match": `"${revision}"` } },
      body: what,
    }),
  );

export const restoreRevision = (name: string, revision: number, number: number) =>
  body(
    client.POST("/api/v1/profiles/{name}/revisions/{number}/restore", {
      params: { path: { name, number }, header: { "If-Match": `"${revision}"` } },
    }),
  );

export const deleteProfile = (name: string, revision: number) =>
  body(
    client.DELETE("/api/v1/profiles/{name}", {
      params: { path: { name }, header: { "If-Match": `"${revision}"` } },
    }),
  );

/** Accepts values as people write them, or throws with a problem for each field. */
export const checkValues = (
  values: Schemas["ValuesCheck"]["values"],
  steps: Schemas["ValuesCheck"]["steps"],
  intent: Readonly<Record<string, unknown>> | null,
) => body(client.POST("/api/v1/profiles/check", { body: { values, steps, intent } }));

export const addAssignment = (what: Schemas["AssignmentCreate"]) =>
  body(client.POST("/api/v1/assignments", { body: what }));

export const removeAssignment = (number: number) =>
  body(client.DELETE("/api/v1/assignments/{number}", { params: { path: { number } } }));

export const signOut = () => body(client.DELETE("/api/v1/session"));

/** The answer has the token's secret, which nobody can be shown again. */
export const createToken = (what: Schemas["TokenCreate"]) =>
  body(client.POST("/api/v1/tokens", { body: what }));

export const revokeToken = (token: string) =>
  body(client.DELETE("/api/v1/tokens/{token}", { params: { path: { token } } }));

export const signBrowserOut = (browser: string) =>
  body(client.DELETE("/api/v1/browsers/{browser}", { params: { path: { browser } } }));

/** The answer has the secret, which nobody can be shown again. */
export const createWebhook = (what: Schemas["WebhookCreate"]) =>
  body(client.POST("/api/v1/webhooks", { body: what }));

export const deleteWebhook = (webhook: string) =>
  body(client.DELETE("/api/v1/webhooks/{webhook}", { params: { path: { webhook } } }));

export const testWebhook = (webhook: string) =>
  body(client.POST("/api/v1/webhooks/{webhook}/test", { params: { path: { webhook } } }));

/** Under the same `webhook-id`, so that the receiver can tell. */
export const replayDelivery = (webhook: string, number: number) =>
  body(
    client.POST("/api/v1/webhooks/{webhook}/deliveries/{number}/replay", {
      params: { path: { webhook, number } },
    }),
  );

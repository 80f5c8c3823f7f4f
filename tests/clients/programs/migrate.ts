// Migrate a VM with the types that openapi-typescript generated, and openapi-fetch.
//
// node migrate.ts URL TOKEN VM DESTINATION
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.d.ts";

type State = components["schemas"]["MigrationState"];
const ENDED: readonly State[] = ["completed", "failed", "cancelled"];

const [url, token, vm, destination] = process.argv.slice(2);
if (!url || !token || !vm || !destination) throw new Error("URL TOKEN VM DESTINATION");
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });
const key = crypto.randomUUID();

const refused = await client.POST("/api/v1/migrations", { body: { vm, destination: "nowhere" } });
console.log(refused.error?.errors[0]?.code);

let id = "";
for (let time = 0; time < 2; time++) {
  // A repeated request begins nothing more.
  const made = await client.POST("/api/v1/migrations", {
    body: { vm, destination },
    params: { header: { "Idempotency-Key": key } },
  });
  if (made.error) throw new Error(made.error.detail);
  id = made.data.id;
  console.log(id);
}
for (;;) {
  const found = await client.GET("/api/v1/migrations/{migration}", {
    params: { path: { migration: id } },
  });
  if (found.error) throw new Error(found.error.detail);
  if (ENDED.includes(found.data.state)) {
    console.log(found.data.state);
    break;
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
}

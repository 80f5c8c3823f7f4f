/** What pages ask the service about many VMs, and about which profile is for whom. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { body, client, type Schemas } from "./client";
import type { VmFilter } from "./queries";

const MOST_A_PAGE = 200;

export type VmRow = Schemas["VmView"];

/** All VMs of a list, page by page, as the service has them when each is asked for. */
export async function* everyVm(filter: VmFilter): AsyncGenerator<VmRow> {
  // In the order of names: what is done to one of them does not move it to another page.
  const { sort: _sort, ...query } = filter;
  let after: string | null = null;
  do {
    const page: Schemas["VmPage"] = await body(
      client.GET("/api/v1/vms", {
        params: { query: { ...query, limit: MOST_A_PAGE, ...(after === null ? {} : { after }) } },
      }),
    );
    yield* page.items;
    after = page.next;
  } while (after !== null);
}

/** The labels are all that the VM has then. */
export const setLabels = (vm: string, labels: Readonly<Record<string, string>>) =>
  body(client.PUT("/api/v1/vms/{vm}/labels", { params: { path: { vm } }, body: { labels } }));

export const explainVm = (vm: string) =>
  body(client.GET("/api/v1/vms/{vm}/explain", { params: { path: { vm } } }));

/** VMs whose name has *search* in it, or whose UUID begins so: a few. */
export const vmsNamed = (search: string) =>
  queryOptions({
    queryKey: ["vm", "named", search],
    queryFn: () =>
      body(client.GET("/api/v1/vms", { params: { query: { search, limit: 20 } } })).then(
        (page) => page.items,
      ),
    placeholderData: (before) => before,
  });

/** Values and steps to begin a profile with: they change only with the service's version. */
export const templates = queryOptions({
  queryKey: ["profile-templates"],
  queryFn: () => body(client.GET("/api/v1/profile-templates")).then((page) => page.items),
  staleTime: Number.POSITIVE_INFINITY,
});

/** Profiles by name, all those that a choice can offer. */
export const profileNames = infiniteQueryOptions({
  queryKey: ["profile", "list", "names"],
  queryFn: ({ pageParam }) =>
    body(
      client.GET("/api/v1/profiles", {
        params: {
          query: { limit: MOST_A_PAGE, ...(pageParam === null ? {} : { after: pageParam }) },
        },
      }),
    ),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next,
});

import { QueryClient } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";
import { client } from "./client";
import { samples } from "./queries";

type Asking = { params: { query: { after?: string; later_than_ms?: number } } };

const LATEST = 25;

/** Answers as the service does, three samples a page, one each 10 ms until *last*. */
function serving(last: () => number) {
  return vi.spyOn(client, "GET").mockImplementation((async (_path: string, asking: Asking) => {
    const query = asking.params.query;
    const asked = Number(query.after ?? query.later_than_ms ?? -1);
    const times = Array.from({ length: 100 }, (_, number) => number * 10);
    const found = times.filter((each) => each > asked && each <= last());
    const items = found.slice(0, 3).map((at_ms) => ({ at_ms }));
    return { data: { items, next: found.length > 3 ? `${items.at(-1)?.at_ms}` : null } };
  }) as never);
}

afterEach(() => vi.restoreAllMocks());

test("a series is fetched whole, then only what came since", async () => {
  let last = LATEST * 10;
  const asked = serving(() => last);
  const cache = new QueryClient();
  const whole = await cache.fetchQuery(samples("m"));
  expect(whole).toHaveLength(LATEST + 1);
  last += 20;
  asked.mockClear();
  const longer = await cache.fetchQuery(samples("m"));
  expect(longer.map((each) => each.at_ms)).toEqual(
    Array.from({ length: LATEST + 3 }, (_, number) => number * 10),
  );
  expect(asked).toHaveBeenCalledTimes(1);
});

test("where nothing came the series is the same one, and nothing is drawn again", async () => {
  serving(() => 50);
  const cache = new QueryClient();
  const before = await cache.fetchQuery(samples("m"));
  expect(await cache.fetchQuery(samples("m"))).toBe(before);
});

test("a series is outdated by an event of its migration: its end brings the last samples", () => {
  expect(samples("m").queryKey[0]).toBe("migration");
});

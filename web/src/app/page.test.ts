import { afterEach, expect, test, vi } from "vitest";
import { untilLoaded } from "./page";

const FOUND = { default: () => null };

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("a page that cannot be fetched is fetched once the service is back", async () => {
  vi.useFakeTimers();
  let up = false;
  const load = vi.fn(() => (up ? Promise.resolve(FOUND) : Promise.reject(new TypeError())));
  const anew = vi.fn();
  const loaded = untilLoaded(load, () => Promise.resolve(up), anew);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(load.mock.calls.length).toBeGreaterThan(1);
  up = true;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await loaded).toBe(FOUND);
  expect(anew).not.toHaveBeenCalled();
});

test("a service that comes back between two looks does not lose what the page holds", async () => {
  const load = vi.fn().mockRejectedValueOnce(new TypeError()).mockResolvedValue(FOUND);
  const anew = vi.fn();
  expect(await untilLoaded(load, () => Promise.resolve(true), anew)).toBe(FOUND);
  expect(anew).not.toHaveBeenCalled();
});

test("a page that an upgraded service no longer has is loaded anew, once it is old", async () => {
  const load = () => Promise.reject(new TypeError("gone"));
  const now = vi.spyOn(performance, "now").mockReturnValue(1);
  const anew = vi.fn();
  await expect(untilLoaded(load, () => Promise.resolve(true), anew)).rejects.toThrow("gone");
  expect(anew).not.toHaveBeenCalled();
  now.mockReturnValue(60_000);
  await expect(
    untilLoaded(
      load,
      () => Promise.resolve(true),
      () => {
        throw new Error("anew");
      },
    ),
  ).rejects.toThrow("anew");
});

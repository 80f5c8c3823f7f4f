import { expect, test } from "vitest";
import { thin } from "./thin";

const x = (item: [number, number]) => item[0];
const y = (item: [number, number]) => item[1];

test("few points are all kept", () => {
  const few: [number, number][] = [
    [0, 1],
    [5, 2],
  ];
  expect(thin(few, x, y)).toEqual(few);
  expect(thin([], x, y)).toEqual([]);
});

test("of many points the ends, every peak and every dip are kept, in their order", () => {
  const many = Array.from({ length: 100_000 }, (_, n): [number, number] => [n * 10, n % 7]);
  many[54_321] = [543_210, 1e9];
  many[77_777] = [777_770, -1e9];
  const fewer = thin(many, x, y);
  expect(fewer.length).toBeLessThanOrEqual(8_004);
  expect(fewer[0]).toEqual(many[0]);
  expect(fewer.at(-1)).toEqual(many.at(-1));
  expect(fewer).toContainEqual([543_210, 1e9]);
  expect(fewer).toContainEqual([777_770, -1e9]);
  const times = fewer.map(x);
  expect(times).toEqual([...times].sort((one, two) => one - two));
  expect(new Set(times).size).toBe(times.length);
});

test("points that were taken at one moment are thinned as well", () => {
  const same = Array.from({ length: 50 }, (_, n): [number, number] => [3, n]);
  expect(thin(same, x, y, 2)).toEqual([
    [3, 0],
    [3, 49],
  ]);
});

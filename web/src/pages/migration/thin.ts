/** Fewer points for the same picture: a screen has fewer columns than a long series has points. */

export type Point = [x: number, y: number];

/** Columns that a chart is drawn in, a few times what a screen has: one may zoom in. */
const COLUMNS = 2_000;

/**
 * The points that a line through all of *items* would be seen by: of each column the first, the
 * lowest, the highest and the last, in their order. All of them where they are few.
 */
export function thin<T>(
  items: readonly T[],
  x: (item: T) => number,
  y: (item: T) => number,
  columns = COLUMNS,
): Point[] {
  const point = (item: T): Point => [x(item), y(item)];
  const [first, last] = [items[0], items.at(-1)];
  if (first === undefined || last === undefined || items.length <= 4 * columns) {
    return items.map(point);
  }
  const begin = x(first);
  const width = (x(last) - begin) / columns || 1;
  const found: Point[] = [];
  let from = 0;
  while (from < items.length) {
    const column = Math.floor((x(items[from] as T) - begin) / width);
    let lowest = from;
    let highest = from;
    let to = from;
    for (; to < items.length; to += 1) {
      const item = items[to] as T;
      if (to > from && Math.floor((x(item) - begin) / width) !== column) break;
      if (y(item) < y(items[lowest] as T)) lowest = to;
      if (y(item) > y(items[highest] as T)) highest = to;
    }
    const kept = [...new Set([from, lowest, highest, to - 1])].sort((one, two) => one - two);
    for (const index of kept) found.push(point(items[index] as T));
    from = to;
  }
  return found;
}

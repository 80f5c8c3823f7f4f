/** Filters in the page's address: what is empty is left out of it. */

export type Changes = Readonly<Record<string, string | readonly string[] | undefined>>;

/** *search* with *changes* made to it. */
export function changed(search: URLSearchParams, changes: Changes): URLSearchParams {
  const made = new URLSearchParams(search);
  for (const [key, value] of Object.entries(changes)) {
    made.delete(key);
    for (const each of [value ?? []].flat()) if (each !== "") made.append(key, each);
  }
  return made;
}

/** Labels as they are typed: `tier=db zone=a old-`. */

/** By key; null removes the label. */
export type LabelChanges = Readonly<Record<string, string | null>>;

/** What *text* changes, and the words of it that are no label. */
export function labelChanges(text: string): { changes: LabelChanges; faults: string[] } {
  const changes: Record<string, string | null> = {};
  const faults: string[] = [];
  for (const word of text.split(/[\s,]+/).filter(Boolean)) {
    const [key = "", ...rest] = word.split("=");
    if (rest.length > 0 && key) changes[key] = rest.join("=");
    else if (rest.length === 0 && word.endsWith("-") && word.length > 1) {
      changes[word.slice(0, -1)] = null;
    } else faults.push(word);
  }
  return { changes, faults };
}

/** What changes from one revision's values to another's. */
export interface Change {
  tunable: string;
  before: string | null;
  after: string | null;
}

type Texts = Readonly<Record<string, string>>;

/** Null stands for unset. What is the same is left out. */
export function difference(before: Texts, after: Texts): Change[] {
  return sideBySide(before, after).filter((change) => change.before !== change.after);
}

/** Both values of each tunable that either sets. */
export function sideBySide(before: Texts, after: Texts): Change[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.map((tunable) => ({
    tunable,
    before: before[tunable] ?? null,
    after: after[tunable] ?? null,
  }));
}

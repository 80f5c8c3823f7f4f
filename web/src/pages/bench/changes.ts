/** What a person typed as changes of a scenario. */
export interface ReadChanges {
  changes: Record<string, unknown>;
  problem: string;
}

/** The JSON object that *typed* is; nothing typed is no change. */
export function readChanges(typed: string): ReadChanges {
  if (typed.trim() === "") return { changes: {}, problem: "" };
  try {
    const read: unknown = JSON.parse(typed);
    if (typeof read === "object" && read !== null && !Array.isArray(read)) {
      return { changes: read as Record<string, unknown>, problem: "" };
    }
    return { changes: {}, problem: 'This is no object: write {"part": value}' };
  } catch (error) {
    return { changes: {}, problem: `Not valid JSON: ${(error as Error).message}` };
  }
}

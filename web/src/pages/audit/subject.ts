/** The pages of what entries are about, by the first word of the subject. */
const PAGES: Readonly<Record<string, string>> = {
  vm: "/vms",
  migration: "/migrations",
  host: "/hosts",
  profile: "/profiles",
  run: "/bench/runs",
  campaign: "/bench/campaigns",
  study: "/bench/studies",
};

/** The page of what an entry is about, such as `run 55e5…`; null where there is none. */
export function pageOf(subject: string): string | null {
  const [, what = "", key = ""] = /^(\S+) (.+)$/.exec(subject) ?? [];
  // Several things, such as `host a, evacuation …`, have no page in common.
  if (key === "" || key.includes(", ") || !Object.hasOwn(PAGES, what)) {
    return null;
  }
  return `${PAGES[what]}/${encodeURIComponent(key)}`;
}

const ID = /\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

/** The same with short ids, as the command line has them: `run 55e55ea5`. */
export function shortened(subject: string): string {
  return subject.replace(ID, "$1");
}

/** What the search over everything offers: pages and actions by their words, and what is found. */
import type { Schemas } from "../api/client";

export interface Offer {
  /** What kind it is, before its title. */
  kind: string;
  title: string;
  detail: string;
  to: string;
}

const page = (title: string, to: string): Offer => ({ kind: "Page", title, detail: "", to });
const action = (title: string, to: string): Offer => ({ kind: "Action", title, detail: "", to });

const FIXED: readonly Offer[] = [
  page("Overview", "/"),
  page("VMs", "/vms"),
  page("Migrations", "/migrations"),
  page("Forecasts", "/forecasts"),
  page("Profiles", "/profiles"),
  page("Hosts", "/hosts"),
  page("Campaigns", "/bench/campaigns"),
  page("Studies", "/bench/studies"),
  page("Runs", "/bench/runs"),
  page("Scenarios", "/bench/scenarios"),
  page("Compare", "/bench/compare"),
  page("History", "/bench/history"),
  page("Published", "/bench/reference"),
  page("Audit", "/audit"),
  page("Settings", "/settings"),
  action("Add host", "/hosts?do=add"),
  action("Create profile", "/profiles/new"),
  action("Create token", "/settings?do=token"),
  action("Create webhook", "/settings?do=webhook"),
  action("New campaign", "/bench/campaigns/new"),
  action("Show drifted VMs", "/vms?tuning=drifted"),
  action("Show migrations that exceeded their limit", "/migrations?downtime=exceeded"),
  action("Show migrations that did not keep their intent", "/migrations?intent=broken"),
  action("Show hosts that do not answer", "/hosts?state=unreachable"),
];

const MAX_FIXED = 6;

type Found = Schemas["FoundView"];

const ADDRESS: Record<Found["kind"], (id: string) => string> = {
  vm: (id) => `/vms/${id}`,
  host: (name) => `/hosts/${encodeURIComponent(name)}`,
  profile: (name) => `/profiles/${encodeURIComponent(name)}`,
  migration: (id) => `/migrations/${id}`,
  campaign: (id) => `/bench/campaigns/${id}`,
  study: (id) => `/bench/studies/${id}`,
  run: (id) => `/bench/runs/${id}`,
};
const KIND: Record<Found["kind"], string> = {
  vm: "VM",
  host: "Host",
  profile: "Profile",
  migration: "Migration",
  campaign: "Campaign",
  study: "Study",
  run: "Run",
};

/** Pages and actions whose words all of *text* begin; all pages where nothing is typed. */
export function fixed(text: string): Offer[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return FIXED.filter((each) => each.kind === "Page");
  return FIXED.filter(({ kind, title }) => {
    const all = `${kind} ${title}`.toLowerCase().split(/\s+/);
    return words.every((word) => all.some((each) => each.startsWith(word)));
  }).slice(0, MAX_FIXED);
}

/** What was found, and what can be done with the only VM or host among it. */
export function offers(text: string, found: readonly Found[]): Offer[] {
  const items = found.map(({ kind, id, title, detail }) => ({
    kind: KIND[kind],
    title,
    detail,
    to: ADDRESS[kind](id),
  }));
  const all = [...fixed(text), ...items, ...actionsOn(found)];
  return all.sort((one, two) => rank(one, text) - rank(two, text));
}

/** What is called so comes first, then what is called so at its beginning; others stay in order. */
function rank({ title }: Offer, text: string): number {
  const [name, typed] = [title.toLowerCase(), text.trim().toLowerCase()];
  if (name === typed) return 0;
  return name.startsWith(typed) ? 1 : 2;
}

function actionsOn(found: readonly Found[]): Offer[] {
  const [vm, ...moreVms] = found.filter(({ kind }) => kind === "vm");
  const [host, ...moreHosts] = found.filter(({ kind }) => kind === "host");
  return [
    ...(vm && moreVms.length === 0
      ? [
          action(`Migrate ${vm.title}`, `/vms/${vm.id}?do=migrate`),
          action(`Plan and apply for ${vm.title}`, `/vms/${vm.id}?do=apply`),
          action(`Migrations of ${vm.title}`, `/migrations?search=${vm.id}`),
        ]
      : []),
    ...(host && moreHosts.length === 0
      ? [
          action(`VMs of ${host.title}`, `/vms?host=${encodeURIComponent(host.id)}`),
          action(`Evacuate ${host.title}`, `/hosts/${encodeURIComponent(host.id)}/evacuate`),
        ]
      : []),
  ];
}

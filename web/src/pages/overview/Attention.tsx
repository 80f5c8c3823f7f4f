import { Button, Card, CardBody, CardTitle, Label } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { overview } from "../../api/overview";
import type { Needs } from "../../api/progress";
import type { Look } from "../../components/labels/StateLabel";
import { useProgress } from "../../components/live/useProgress";
import { expected } from "../../components/migration/outlook";
import { count, unbroken, way } from "../../components/text/format";

const RaiseLimit = lazy(() => import("./RaiseLimit"));

type Concern = Schemas["Concern"];
type Attentive = Schemas["AttentionView"];

interface Said {
  look: Look;
  /** Of one, and of several. */
  text: readonly [string, string];
  all: string;
  one: (id: string, name: string) => string;
}

const migration = (id: string) => `/migrations/${id}`;
const vm = (id: string) => `/vms/${id}`;

const CONCERNS: Record<Concern, Said> = {
  "post-copy paused": {
    look: "danger",
    text: ["migration paused in post-copy", "migrations paused in post-copy"],
    all: "/migrations?state=postcopy-paused",
    one: migration,
  },
  "host unreachable": {
    look: "danger",
    text: ["host does not answer", "hosts do not answer"],
    all: "/hosts?state=unreachable",
    one: (name) => `/hosts/${encodeURIComponent(name)}`,
  },
  "unknown end": {
    look: "warning",
    text: ["migration whose end is unknown", "migrations whose end is unknown"],
    all: "/migrations?state=unknown",
    one: migration,
  },
  "evacuation stopped": {
    look: "danger",
    text: [
      "evacuation stopped before its host was empty",
      "evacuations stopped before their hosts were empty",
    ],
    all: "/hosts",
    one: (id, host) => `/hosts/${encodeURIComponent(host)}/evacuations/${id}`,
  },
  failed: {
    look: "danger",
    text: ["migration failed", "migrations failed"],
    all: "/migrations?state=failed",
    one: migration,
  },
  "intent not kept": {
    look: "warning",
    text: ["migration did not keep its intent", "migrations did not keep their intent"],
    all: "/migrations?intent=broken",
    one: migration,
  },
  "downtime exceeded": {
    look: "warning",
    text: ["migration exceeded its downtime limit", "migrations exceeded their downtime limit"],
    all: "/migrations?downtime=exceeded",
    one: migration,
  },
  drifted: {
    look: "danger",
    text: ["VM has drifted", "VMs have drifted"],
    all: "/vms?tuning=drifted",
    one: vm,
  },
  unreadable: {
    look: "warning",
    text: ["VM whose values could not be read", "VMs whose values could not be read"],
    all: "/vms?tuning=unknown",
    one: vm,
  },
  "pending restart": {
    look: "info",
    text: ["VM waits for its restart", "VMs wait for their restart"],
    all: "/vms?tuning=pending+restart",
    one: vm,
  },
};

const NAMED = 2;
/** Come before migrations that do not end by themselves: a guest is lost where a host is shut down. */
const FIRST: readonly Concern[] = ["post-copy paused"];

/** What needs a person now, the most urgent first. */
export function Attention({ found }: { found: readonly Attentive[] }) {
  const stuck = useStuck();
  const [raised, raise] = useState<Stuck | null>(null);
  const listed = (first: boolean) =>
    found
      .filter(({ concern }) => FIRST.includes(concern) === first)
      .map((each) => (
        <li key={each.concern}>
          <One {...each} />
        </li>
      ));
  return (
    <Card isCompact isFullHeight component="section" aria-labelledby="attention">
      <CardTitle component="h2" id="attention">
        Needs attention
      </CardTitle>
      <CardBody>
        {found.length + stuck.length === 0 ? (
          <p>Nothing.</p>
        ) : (
          <ul className="vt-attention">
            {listed(true)}
            {stuck.map((each) => (
              <li key={each.id}>
                <Label isCompact status="warning">
                  1
                </Label>{" "}
                <Link to={migration(each.id)}>{each.name}</Link> {each.text}{" "}
                {typeof each.needs?.downtime_limit_ms === "number" && (
                  <Button
                    variant="link"
                    isInline
                    aria-label={`Raise limit of ${each.name}`}
                    onClick={() => raise(each)}
                  >
                    Raise limit
                  </Button>
                )}
              </li>
            ))}
            {listed(false)}
          </ul>
        )}
      </CardBody>
      {raised && (
        <Suspense fallback={null}>
          <RaiseLimit
            id={raised.id}
            vm={raised.name}
            needs={raised.needs}
            close={() => raise(null)}
          />
        </Suspense>
      )}
    </Card>
  );
}

function One({ concern, count: number, subjects }: Attentive) {
  const { look, text, all, one } = CONCERNS[concern];
  const named = subjects.slice(0, NAMED);
  return (
    <>
      <Label isCompact {...(look ? { status: look } : {})}>
        {count(number)}
      </Label>{" "}
      <Link to={all}>{text[number === 1 ? 0 : 1]}</Link>
      {": "}
      {named.map((each, place) => (
        <span key={each.id}>
          {place > 0 && ", "}
          <Link to={one(each.id, each.name)}>{each.name}</Link>
          {number === 1 && each.text && ` (${each.text})`}
        </span>
      ))}
      {number > named.length && ` and ${count(number - named.length)} more`}
    </>
  );
}

interface Stuck {
  id: string;
  name: string;
  text: string;
  needs: Needs | null;
}

/** Running migrations that will not end by themselves, as far as is known. */
function useStuck(): Stuck[] {
  const { data } = useQuery(overview);
  const progress = useProgress();
  return (data?.migrations ?? []).flatMap((each) => {
    const now = each.ended_at === null ? progress.get(each.id) : undefined;
    if (now?.outlook?.ends !== false) return [];
    const text = unbroken(`(${way(each)}) ${expected(now) ?? ""}`);
    return [{ id: each.id, name: each.vm_name, text, needs: now.outlook.needs }];
  });
}

import {
  Button,
  Card,
  CardBody,
  CardHeader,
  CardTitle,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { forecastVm } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { profiles } from "../../api/queries";
import { Alert } from "../../components/layout/Alert";
import { Failure } from "../../components/layout/Async";
import { about, helps } from "../../components/migration/outlook";
import { type ColumnOf, ListTable } from "../../components/tables/ListTable";
import { bytes, counted, rate } from "../../components/text/format";
import { Said } from "../../components/text/Said";

type Candidate = Schemas["CandidateView"];
type Range = Schemas["RangeView"];

const MOST = 10;
const named = (each: Candidate) => each.profile ?? "no profile";

/** "12 s (11 s to 14 s)"; one value where the bounds are not to be told from it. */
export function between(range: Range | null, word: (value: number) => string): string {
  if (range === null) return "–";
  const [low, likely, high] = [word(range.low), word(range.likely), word(range.high)];
  return low === high ? likely : `${likely} (${low} to ${high})`;
}

/** "adjusted using 43 recorded migrations"; empty where nothing is. */
export function corrections(by: Candidate["corrected_by"]): string {
  const counts = Object.values(by);
  return counts.length === 0 ? "" : `adjusted using ${Math.max(...counts)} recorded migrations`;
}

/** Whether it ends, and if not what would help. */
export function ending({ prospect }: Candidate): string {
  if (prospect === null) return "not known";
  if (prospect.ends === true) return "yes";
  return `${prospect.ends === null ? "may not" : "no"}${helps(prospect.needs)}`;
}

const COLUMNS: readonly ColumnOf<Candidate>[] = [
  { title: "Profile", cell: named },
  { title: "Ends by itself", cell: ending },
  { title: "Time", cell: (each) => between(each.prospect?.total_ms ?? null, about) },
  {
    title: "Guest stands still",
    cell: (each) => between(each.prospect?.silence_ms ?? null, about),
  },
  { title: "Sent", cell: (each) => between(each.prospect?.sent_bytes ?? null, bytes) },
];

/** The disks' part of time and bytes, of each profile that copies some. */
export function copies(all: readonly Candidate[]): string[] {
  return all.flatMap((each) => {
    const copy = each.copy_of_disks;
    if (copy === null) return [];
    const took = copy.ms === null ? "a time that is not known" : between(copy.ms, about);
    return [`${named(each)}: of that the copy of disks ${took}, ${between(copy.bytes, bytes)}`];
  });
}

/** The forecast for the chosen profile and, where one is chosen, the others: asked for by a button,
 * since the guest is measured for it. */
export function MigrationForecast({
  vm,
  destination,
  profile,
  values = {},
}: {
  vm: string;
  destination: string;
  profile: string;
  /** Added to each profile's. */
  values?: Schemas["MigrationForecastCreate"]["values"];
}) {
  const list = useInfiniteQuery(profiles);
  const others = (list.data?.pages.flatMap((page) => page.items) ?? []).map((each) => each.name);
  const candidates = profile === "" ? [] : [...new Set([profile, ...others])].slice(0, MOST);
  const ask = useMutation({
    mutationFn: () =>
      forecastVm(vm, {
        destination,
        profiles: candidates,
        ...(Object.keys(values).length > 0 ? { values } : {}),
      }),
  });
  return (
    <Card isCompact component="section" aria-label="Forecast">
      <CardHeader
        actions={{
          actions: (
            <Button
              variant="secondary"
              size="sm"
              isLoading={ask.isPending}
              isDisabled={ask.isPending}
              onClick={() => ask.mutate()}
            >
              {candidates.length > 1 ? "Forecast and compare" : "Forecast"}
            </Button>
          ),
        }}
      >
        <CardTitle component="h2">Forecast</CardTitle>
      </CardHeader>
      <CardBody>
        <Stack hasGutter>
          <StackItem>
            {ask.isPending
              ? "Measuring how the guest dirties its memory: up to 20 s."
              : "How long it takes, how long the guest stands still, and whether it ends. The " +
                "bounds are meant to hold 90 % of migrations."}
          </StackItem>
          {ask.error && (
            <StackItem>
              <Failure error={ask.error} inline />
            </StackItem>
          )}
          {ask.data && <Told found={ask.data} />}
        </Stack>
      </CardBody>
    </Card>
  );
}

function Told({ found }: { found: Schemas["MigrationForecastView"] }) {
  const paths = new Set(found.candidates.map(throughput));
  const corrected = [...new Set(found.candidates.map((each) => corrections(each.corrected_by)))];
  return (
    <>
      <StackItem>
        <ListTable label="Forecast" columns={COLUMNS} rows={found.candidates} name={named} />
      </StackItem>
      <StackItem>
        {[...paths].join(". ")}. Measured{" "}
        {found.probe.age_s < 1 ? "just now" : `${about(found.probe.age_s * 1000)} ago`}.
      </StackItem>
      {corrected.filter(Boolean).map((said) => (
        <StackItem key={said}>Time, silence and bytes are {said}, as far as these tell.</StackItem>
      ))}
      {copies(found.candidates).map((said) => (
        <StackItem key={said}>{said}.</StackItem>
      ))}
      {remarks(found.candidates).map(([note, of]) => (
        <StackItem key={note.message}>
          <Alert isInline isPlain variant="info" title={`${of}: ${note.message}`}>
            <Said>{note.remedy}</Said>
          </Alert>
        </StackItem>
      ))}
    </>
  );
}

function throughput({ throughput: path }: Candidate): string {
  if (path === null) return "The throughput is not known";
  const by = path.records > 0 ? `by ${counted(path.records, "migration")}` : "by what is set";
  return `Throughput ${between(path.bytes_per_s, rate)}, ${by}`;
}

/** Each note once, with the profiles that it is of. */
export function remarks(all: readonly Candidate[]): [Schemas["ProblemItem"], string][] {
  const notes = new Map(all.flatMap((each) => each.notes.map((note) => [note.message, note])));
  return [...notes.values()].map((note) => {
    const of = all.filter((each) => each.notes.some((other) => other.message === note.message));
    return [note, of.map(named).join(", ")];
  });
}

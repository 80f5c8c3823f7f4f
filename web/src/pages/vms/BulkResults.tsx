import {
  Flex,
  FlexItem,
  Progress,
  ProgressMeasureLocation,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { Link } from "react-router";
import { Labelled, type Look } from "../../components/labels/StateLabel";
import { Alert } from "../../components/layout/Alert";
import { Failure } from "../../components/layout/Async";
import { type ColumnOf, ListTable } from "../../components/tables/ListTable";
import { count, counted } from "../../components/text/format";
import { countsOf, type Ended, type Limits, type Result, VERDICTS, type Verdict } from "./bulk";

const LOOKS: Record<Verdict, Look> = {
  failed: "danger",
  unknown: "warning",
  differs: "warning",
  skipped: undefined,
  done: "success",
};
const MOST_SHOWN = 200;

/** How far it is, and what became of each VM, the worst first. */
export function BulkResults({
  results,
  total,
  doneWord,
  running,
  ended,
  limits,
  failure,
}: {
  results: readonly Result[];
  total: number;
  doneWord: string;
  running: boolean;
  ended: Ended;
  limits: Limits;
  failure: Error | null;
}) {
  const counts = countsOf(results);
  const sorted = [...results].sort(
    (one, two) => VERDICTS.indexOf(one.verdict) - VERDICTS.indexOf(two.verdict),
  );
  const word = (verdict: Verdict) => (verdict === "done" ? doneWord : verdict);
  const goal = Math.max(Math.min(total, limits.most), results.length);
  const columns: readonly ColumnOf<Result>[] = [
    {
      title: "VM",
      text: "breaks",
      cell: ({ vm }) => <Link to={`/vms/${vm.uuid}`}>{vm.name}</Link>,
    },
    { title: "Host", cell: ({ vm }) => vm.host },
    {
      title: "Result",
      text: "short",
      cell: ({ verdict }) => <Labelled look={LOOKS[verdict]}>{word(verdict)}</Labelled>,
    },
    {
      title: "Details",
      text: "breaks",
      cell: ({ text, to }) => (to?.startsWith("/migrations/") ? <Link to={to}>{text}</Link> : text),
    },
  ];
  return (
    <Stack hasGutter>
      {running ? (
        <StackItem>
          <Progress
            aria-label="Progress"
            title={`${count(results.length)} of ${counted(goal, "VM")}`}
            value={goal === 0 ? 0 : (100 * results.length) / goal}
            measureLocation={ProgressMeasureLocation.none}
          />
        </StackItem>
      ) : (
        <StackItem>
          <Alert isInline isLiveRegion variant={look(counts, ended)} title={sentence(counts, word)}>
            {why(ended, limits, total - results.length)}
          </Alert>
        </StackItem>
      )}
      {failure && (
        <StackItem>
          <Failure error={failure} inline />
        </StackItem>
      )}
      {running && (
        <StackItem>
          <Flex>
            {VERDICTS.filter((each) => counts[each]).map((each) => (
              <FlexItem key={each}>
                {count(counts[each] ?? 0)} {word(each)}
              </FlexItem>
            ))}
          </Flex>
        </StackItem>
      )}
      {sorted.length > 0 && (
        <StackItem>
          <ListTable
            label="Results"
            columns={columns}
            rows={sorted.slice(0, MOST_SHOWN)}
            name={({ vm }) => vm.uuid}
          />
          {sorted.length > MOST_SHOWN && <p>and {count(sorted.length - MOST_SHOWN)} more</p>}
        </StackItem>
      )}
    </Stack>
  );
}

type Counts = ReturnType<typeof countsOf>;

function look(counts: Counts, ended: Ended): "danger" | "warning" | "success" {
  if (counts.failed || counts.unknown) return "danger";
  return counts.differs || counts.skipped || ended ? "warning" : "success";
}

function sentence(counts: Counts, word: (verdict: Verdict) => string): string {
  const parts = [...VERDICTS]
    .reverse()
    .filter((each) => counts[each])
    .map((each) => `${count(counts[each] ?? 0)} ${word(each)}`);
  return parts.join(", ") || "No VM was changed";
}

function why(ended: Ended, limits: Limits, rest: number): string {
  const left = rest > 0 ? `; ${counted(rest, "VM")} left as they were` : "";
  switch (ended) {
    case "limit":
      return `The limit of ${counted(limits.most, "VM")} was reached${left}.`;
    case "failures":
      return `It stopped after ${counted(limits.stopAfter, "failure")}${left}.`;
    case "stopped":
      return `It was stopped${left}.`;
    default:
      return "";
  }
}

import {
  Card,
  CardBody,
  CardTitle,
  List,
  ListItem,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { GOALS, type Goal as GoalName } from "../../components/forms/intent";
import { Labelled } from "../../components/labels/StateLabel";
import { TunableName } from "../../components/labels/TunableName";
import { type Fact, FactList } from "../../components/layout/Facts";
import { duration, rate } from "../../components/text/format";

type Goal = Schemas["GoalKeptView"];
type Stated = Schemas["StatedIntentView"];

const NAMES: Record<GoalName, string> = {
  max_silence_ms: "Silence",
  deadline_s: "Time",
  max_slowdown_percent: "Slowdown",
  max_bandwidth_bytes_per_s: "Bandwidth",
};
const SAID: Record<GoalName, (measured: number) => string> = {
  max_silence_ms: duration,
  deadline_s: (measured) => duration(measured * 1000),
  max_slowdown_percent: (measured) => `${Math.round(measured)} %`,
  max_bandwidth_bytes_per_s: rate,
};

/** What the migration is to cost at most, what was expected of that, and what was kept. */
export function Intent({ intent, state }: { intent: Stated; state: Schemas["MigrationState"] }) {
  const chosen = Object.entries(intent.chosen);
  const facts: Fact[] = [
    ["Asked for", intent.text],
    ["Forecast", intent.forecast || "–"],
    ...intent.goals.map((goal): Fact => [NAMES[named(goal)], <Kept key="goal" goal={goal} />]),
    ...(chosen.length > 0
      ? [[chosenWord(intent), <Chosen key="chosen" of={chosen} />] as Fact]
      : []),
    ...(intent.steered_until_ms === null
      ? []
      : [
          [
            "Steered until",
            `${duration(intent.steered_until_ms)}, then vmtune lost sight of it`,
          ] as Fact,
        ]),
    ...(intent.pinned.length > 0 ? [["Pinned", intent.pinned.join(", ")] as Fact] : []),
  ];
  return (
    <Card isFullHeight>
      <CardTitle component="h2">Intent</CardTitle>
      <CardBody>
        <Stack hasGutter>
          <StackItem>
            <strong>{promised(intent, state)}</strong>
          </StackItem>
          <StackItem>
            <FactList facts={facts} />
          </StackItem>
        </Stack>
      </CardBody>
    </Card>
  );
}

const chosenWord = (intent: Stated) => (intent.shadow ? "Would have chosen" : "Chosen");

const named = (goal: Goal) => goal.goal as GoalName;

const tookWord = (goal: Goal) =>
  goal.measured === null ? "not known" : SAID[named(goal)](goal.measured);

/** QEMU itself holds the bandwidth, and over less than a second nothing is told of it. */
const PROMISED: readonly string[] = ["max_silence_ms", "deadline_s", "max_slowdown_percent"];

/** Of all goals together; what is not known is not claimed. */
function verdict(goals: readonly Goal[]): string {
  if (goals.some((goal) => goal.kept === false)) return "not kept";
  return goals.every((goal) => goal.kept) ? "kept" : "kept as far as is known";
}

/** "Promised: silence of at most 500 ms, within 30 s; kept: 51 ms, 4.5 s." */
export function promised(
  { goals: all, stated, shadow, text }: Stated,
  state: Schemas["MigrationState"],
): string {
  const bounds = Object.entries(GOALS).flatMap(([goal, { words }]) => {
    const bound = stated[goal];
    return typeof bound === "number" && PROMISED.includes(goal) ? [words(bound)] : [];
  });
  const asked = bounds.join(", ") || text;
  const goals = all.filter((goal) => PROMISED.includes(goal.goal));
  const took = goals.map(tookWord).join(", ");
  const kept = verdict(goals);
  if (shadow) {
    if (goals.length === 0) return `Shadow mode: ${asked} was not promised.`;
    return `Shadow mode: ${asked} was not promised; without steering ${kept}: ${took}.`;
  }
  if (goals.length > 0) return `Promised: ${asked}; ${kept}: ${took}.`;
  if (state === "cancelled")
    return `Promised: ${asked}; given up, and the guest stayed where it was.`;
  if (state === "failed") return `Promised: ${asked}; the migration failed.`;
  return `Promised: ${asked}.`;
}

function Chosen({ of }: { of: readonly (readonly [string, string])[] }) {
  return (
    <List isPlain>
      {of.map(([tunable, why]) => (
        <ListItem key={tunable}>
          <TunableName name={tunable} />: {why}
        </ListItem>
      ))}
    </List>
  );
}

const BY: Record<Goal["by"], string> = {
  qemu: "",
  throttle: " by the hardest throttle",
  sent: " in the second with the most",
  unknown: "",
};

function Kept({ goal }: { goal: Goal }) {
  const bound = SAID[named(goal)](goal.bound);
  if (goal.measured === null || goal.kept === null) {
    return <Labelled look={undefined}>{`not known, at most ${bound} was asked for`}</Labelled>;
  }
  const by = goal.measured > 0 ? BY[goal.by] : "";
  return (
    <Labelled look={goal.kept ? "success" : "warning"}>
      {`${tookWord(goal)}${by}, at most ${bound}: ${goal.kept ? "kept" : "exceeded"}`}
    </Labelled>
  );
}

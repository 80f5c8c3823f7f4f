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
import { type Fact, FactList } from "../../components/Facts";
import { duration } from "../../components/format";
import { GOALS, type Goal as GoalName } from "../../components/intent";
import { Labelled } from "../../components/StateLabel";
import { TunableName } from "../../components/TunableName";

type Goal = Schemas["GoalKeptView"];
type Stated = Schemas["StatedIntentView"];

const NAMES: Record<string, string> = { max_silence_ms: "Silence", deadline_s: "Time" };

/** What the migration is to cost at most, what was expected of that, and what was kept. */
export function Intent({ intent, state }: { intent: Stated; state: Schemas["MigrationState"] }) {
  const chosen = Object.entries(intent.chosen);
  const facts: Fact[] = [
    ["Asked for", intent.text],
    ["Forecast", intent.forecast || "–"],
    ...intent.goals.map(
      (goal): Fact => [NAMES[goal.goal] ?? goal.goal, <Kept key="goal" goal={goal} />],
    ),
    ...(chosen.length > 0
      ? [[chosenWord(intent), <Chosen key="chosen" of={chosen} />] as Fact]
      : []),
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

/** "Promised: silence of at most 500 ms, within 30 s; kept: 51 ms, 4.5 s." */
export function promised(
  { goals, stated, shadow, text }: Stated,
  state: Schemas["MigrationState"],
): string {
  const bounds = Object.entries(GOALS).flatMap(([goal, { words }]) => {
    const bound = stated[goal];
    return typeof bound === "number" && goal in NAMES ? [words(bound)] : [];
  });
  const asked = bounds.join(", ") || text;
  const took = goals.map((goal) => duration(goal.measured * unitMs(goal.goal))).join(", ");
  const kept = goals.every((goal) => goal.kept);
  if (shadow) {
    if (goals.length === 0) return `Shadow mode: ${asked} was not promised.`;
    return `Shadow mode: ${asked} was not promised; without steering ${kept ? "kept" : "not kept"}: ${took}.`;
  }
  if (goals.length > 0) return `Promised: ${asked}; ${kept ? "kept" : "not kept"}: ${took}.`;
  if (state === "cancelled")
    return `Promised: ${asked}; given up, and the guest stayed where it was.`;
  if (state === "failed") return `Promised: ${asked}; the migration failed.`;
  return `Promised: ${asked}.`;
}

const unitMs = (goal: string) => ((goal as GoalName) === "max_silence_ms" ? 1 : 1000);

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

function Kept({ goal }: { goal: Goal }) {
  const unit_ms = unitMs(goal.goal);
  const took = `${duration(goal.measured * unit_ms)}, at most ${duration(goal.bound * unit_ms)}`;
  return (
    <Labelled look={goal.kept ? "success" : "warning"}>
      {`${took}: ${goal.kept ? "kept" : "exceeded"}`}
    </Labelled>
  );
}

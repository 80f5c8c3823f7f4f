import type { Schemas } from "../../api/client";
import { type Fact, Facts } from "../../components/Facts";
import { duration } from "../../components/format";
import { Labelled } from "../../components/StateLabel";

type Goal = Schemas["GoalKeptView"];

const NAMES: Record<string, string> = { max_silence_ms: "Silence", deadline_s: "Time" };

/** What the migration is to cost at most, what was expected of that, and what was kept. */
export function Intent({ intent }: { intent: Schemas["StatedIntentView"] }) {
  const facts: Fact[] = [
    ["Asked for", intent.text],
    ["Forecast", intent.forecast || "–"],
    ...intent.goals.map(
      (goal): Fact => [NAMES[goal.goal] ?? goal.goal, <Kept key="goal" goal={goal} />],
    ),
  ];
  return <Facts title="Intent" facts={facts} />;
}

function Kept({ goal }: { goal: Goal }) {
  const unit_ms = goal.goal === "max_silence_ms" ? 1 : 1000;
  const took = `${duration(goal.measured * unit_ms)}, at most ${duration(goal.bound * unit_ms)}`;
  return (
    <Labelled look={goal.kept ? "success" : "warning"}>
      {`${took}: ${goal.kept ? "kept" : "exceeded"}`}
    </Labelled>
  );
}

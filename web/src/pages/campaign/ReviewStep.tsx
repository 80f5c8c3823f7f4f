import type { ProblemItem } from "../../api/client";
import { Alert } from "../../components/layout/Alert";
import { FactList } from "../../components/layout/Facts";
import { type Draft, LOADS } from "./draft";

/** All that was chosen, before it starts. */
export function ReviewStep({
  draft,
  problems,
}: {
  draft: Draft;
  problems: readonly ProblemItem[];
}) {
  return (
    <>
      {problems.map((each) => (
        <Alert
          key={`${each.field} ${each.code} ${each.message}`}
          isInline
          variant="danger"
          title={each.message}
        >
          {each.remedy}
        </Alert>
      ))}
      <FactList
        spread
        facts={[
          ["Name", draft.name],
          ["Scenario", draft.scenario + (draft.quick ? ", small" : "")],
          ["Conditions", draft.loads.map((load) => LOADS[load]).join("; ")],
          ["Primary metric", draft.metric],
          ["Blocks", draft.blocks],
          ["Margin", `${draft.margin} %`],
          ...draft.arms.map(
            (arm, index) =>
              [
                `Arm ${index + 1}`,
                [
                  arm.name,
                  arm.profile && `profile ${arm.profile}`,
                  ...arm.values.map(({ tunable, value }) => `${tunable} ${value}`),
                  arm.qemu && `QEMU ${arm.qemu}`,
                  arm.testbed === "lab" && "in the lab",
                ]
                  .filter(Boolean)
                  .join(", "),
              ] as const,
          ),
        ]}
      />
    </>
  );
}

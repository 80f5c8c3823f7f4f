import {
  Card,
  CardBody,
  CardTitle,
  ProgressStep,
  type ProgressStepProps,
  ProgressStepper,
} from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { duration, unbroken } from "../../components/text/format";

type StepRecord = Schemas["StepRecordView"];

const LOOK: Record<StepRecord["effect"], NonNullable<ProgressStepProps["variant"]>> = {
  pending: "info",
  done: "success",
  refused: "danger",
  unknown: "warning",
};

/** What was done to keep the intent, in the order of time: why, and what was expected of it. */
export function Steering({
  records,
  shadow,
  ended,
}: {
  records: readonly StepRecord[];
  /** Nothing of it was done. */
  shadow: boolean;
  ended: boolean;
}) {
  const nothing = `Nothing ${shadow ? "would have been" : "had to be"} done${ended ? "" : " yet"}.`;
  return (
    <Card>
      <CardTitle component="h2">{shadow ? "What steering would have done" : "Steering"}</CardTitle>
      <CardBody>
        {records.length === 0 ? (
          <p>{nothing}</p>
        ) : (
          <ProgressStepper isVertical aria-label="Steering actions">
            {records.map((each, place) => {
              const id = `steering-${place}`;
              const effect = shadow ? "not done" : each.effect;
              return (
                <ProgressStep
                  key={id}
                  id={id}
                  titleId={`${id}-title`}
                  variant={shadow ? "pending" : LOOK[each.effect]}
                  aria-label={effect}
                  description={
                    <>
                      {unbroken([each.reason, expected(each)].filter(Boolean).join("; "))}
                      {!shadow && each.effect !== "done" && `. ${effect}: ${each.detail}`}
                    </>
                  }
                >
                  {unbroken(`${duration(each.at_ms)}: ${each.action}`)}
                </ProgressStep>
              );
            })}
          </ProgressStepper>
        )}
      </CardBody>
    </Card>
  );
}

function expected({ forecast }: StepRecord): string {
  return forecast && `expected: ${forecast}`;
}

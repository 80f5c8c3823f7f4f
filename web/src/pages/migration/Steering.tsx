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
                  {unbroken(`${duration(each.at_ms)}: ${inWords(each)}`)}
                </ProgressStep>
              );
            })}
          </ProgressStepper>
        )}
      </CardBody>
    </Card>
  );
}

const THROTTLE = [
  "cpu_throttle_initial_percent",
  "cpu_throttle_increment_percent",
  "max_cpu_throttle_percent",
];
const LIMIT = "downtime_limit_ms";

/** A throttle is one figure, to which three settings of QEMU are set. */
function inWords({ action, values }: StepRecord): string {
  const percent = values.max_cpu_throttle_percent;
  const limit = values[LIMIT];
  const known = Object.keys(values).every((name) => name === LIMIT || THROTTLE.includes(name));
  if (percent === undefined || !known || THROTTLE.some((name) => values[name] !== percent))
    return action;
  const throttle = `throttle the guest by ${percent} %`;
  return limit === undefined ? throttle : `set ${LIMIT} to ${limit} ms and ${throttle}`;
}

function expected({ forecast }: StepRecord): string {
  return forecast && `expected: ${forecast}`;
}

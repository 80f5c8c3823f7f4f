import {
  Button,
  Flex,
  FlexItem,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  NumberInput,
  TextInput,
} from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { type EditedStep, TRIGGERS } from "./steps";

const ACTIONS = {
  set: "set",
  pause: "pause the guest",
  postcopy: "switch to post-copy",
  abort: "abort",
};

const PLAIN = { minInlineSize: 0, border: 0, margin: 0, padding: 0 };

/** The convergence steps, in their order: when, and what then. */
export function StepsEditor({
  steps,
  settable,
  problems,
  change,
}: {
  steps: readonly EditedStep[];
  settable: readonly Schemas["TunableView"][];
  problems: readonly Schemas["ProblemItem"][];
  change: (steps: EditedStep[]) => void;
}) {
  const replace = (index: number, step: Partial<EditedStep>) =>
    change(steps.map((old, at) => (at === index ? { ...old, ...step } : old)));
  const first = settable[0]?.name ?? "";
  return (
    <>
      {steps.map((step, index) => {
        const told = problems.filter((each) => each.field.startsWith(`steps.${index}`));
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a step is its place in the order
          <fieldset key={index} aria-label={`Step ${index + 1}`} style={PLAIN}>
            <Flex>
              <FlexItem>
                <FormSelect
                  aria-label="When"
                  value={step.trigger}
                  onChange={(_event, chosen) =>
                    replace(index, { trigger: chosen as EditedStep["trigger"] })
                  }
                >
                  {Object.entries(TRIGGERS).map(([value, { label }]) => (
                    <FormSelectOption key={value} value={value} label={label} />
                  ))}
                </FormSelect>
              </FlexItem>
              <FlexItem>
                <NumberInput
                  inputAriaLabel={`Number of ${TRIGGERS[step.trigger].unit}`}
                  value={step.amount}
                  min={0}
                  widthChars={5}
                  unit={TRIGGERS[step.trigger].unit}
                  onMinus={() => replace(index, { amount: Math.max(0, step.amount - 1) })}
                  onPlus={() => replace(index, { amount: step.amount + 1 })}
                  onChange={(event) =>
                    replace(index, { amount: Number((event.target as HTMLInputElement).value) })
                  }
                />
              </FlexItem>
              <FlexItem>
                <FormSelect
                  aria-label="Then"
                  value={step.action}
                  onChange={(_event, chosen) =>
                    replace(index, { action: chosen as EditedStep["action"] })
                  }
                >
                  {Object.entries(ACTIONS).map(([value, label]) => (
                    <FormSelectOption key={value} value={value} label={label} />
                  ))}
                </FormSelect>
              </FlexItem>
              {step.action === "set" && (
                <>
                  <FlexItem>
                    <FormSelect
                      aria-label="Tunable"
                      value={step.tunable || first}
                      onChange={(_event, chosen) => replace(index, { tunable: chosen })}
                    >
                      {settable.map((row) => (
                        <FormSelectOption key={row.name} value={row.name} label={row.title} />
                      ))}
                    </FormSelect>
                  </FlexItem>
                  <FlexItem>
                    <TextInput
                      aria-label="Value"
                      value={step.value}
                      onChange={(_event, typed) => replace(index, { value: typed })}
                    />
                  </FlexItem>
                </>
              )}
              <FlexItem>
                <Button
                  variant="link"
                  onClick={() => change(steps.filter((_old, at) => at !== index))}
                >
                  Remove
                </Button>
              </FlexItem>
            </Flex>
            {told.map((each) => (
              <FormHelperText key={`${each.field} ${each.code}`}>
                <HelperText isLiveRegion>
                  <HelperTextItem variant="error">
                    {each.message}. {each.remedy}
                  </HelperTextItem>
                </HelperText>
              </FormHelperText>
            ))}
          </fieldset>
        );
      })}
      <div>
        <Button
          variant="secondary"
          onClick={() =>
            change([
              ...steps,
              { trigger: "after_iterations", amount: 4, action: "set", tunable: first, value: "" },
            ])
          }
        >
          Add a step
        </Button>
      </div>
    </>
  );
}

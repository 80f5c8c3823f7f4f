import {
  Checkbox,
  Flex,
  FlexItem,
  FormGroup,
  FormSelect,
  FormSelectOption,
  Grid,
  GridItem,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import type { ProblemItem } from "../../api/client";
import { Alert } from "../layout/Alert";
import {
  GOALS,
  type Goal,
  goalNames,
  MEANS,
  type Means,
  mayOf,
  meansNames,
  OTHERWISE,
  type Otherwise,
  type TypedIntent,
} from "./intent";
import { TextField } from "./TextField";

/**
 * What a migration may cost, and what may be used to keep that.
 *
 * @param problems what the service says of it: each is told at its field.
 */
export function IntentFields({
  id,
  typed,
  change,
  problems = [],
}: {
  id: string;
  typed: TypedIntent;
  change: (typed: TypedIntent) => void;
  problems?: readonly ProblemItem[];
}) {
  const of = problems.filter((each) => /^intent(\.|$)/.test(each.field));
  const at = (field: string) =>
    of
      .filter((each) => each.field === `intent.${field}`)
      .map(({ message, remedy }) => (message.includes(remedy) ? message : `${message}. ${remedy}`))
      .join(" ");
  const elsewhere = of.filter((each) => !goalNames.some((goal) => each.field === `intent.${goal}`));
  const named = goalNames.filter((goal) => typed.goals[goal]?.trim());
  return (
    <Stack hasGutter>
      <StackItem>
        <Grid hasGutter>
          {goalNames.map((goal) => (
            <GridItem key={goal} sm={6} xl={3}>
              <TextField
                id={`${id}-${goal}`}
                label={GOALS[goal].label}
                help={GOALS[goal].help}
                fault={at(goal)}
                value={typed.goals[goal] ?? ""}
                change={(text) => change({ ...typed, goals: { ...typed.goals, [goal]: text } })}
              />
            </GridItem>
          ))}
        </Grid>
      </StackItem>
      {named.length > 0 && (
        <>
          <StackItem>
            <May id={id} typed={typed} change={change} />
          </StackItem>
          <StackItem>
            <FormGroup label="If it cannot be kept" fieldId={`${id}-otherwise`}>
              <FormSelect
                id={`${id}-otherwise`}
                value={typed.otherwise}
                onChange={(_event, chosen) => change({ ...typed, otherwise: chosen as Otherwise })}
              >
                {Object.entries(OTHERWISE).map(([value, label]) => (
                  <FormSelectOption key={value} value={value} label={label} />
                ))}
              </FormSelect>
            </FormGroup>
          </StackItem>
          {typed.otherwise === "relax" && (
            <StackItem>
              <Relax id={id} named={named} typed={typed} change={change} />
            </StackItem>
          )}
        </>
      )}
      {elsewhere.map((each) => (
        <StackItem key={`${each.field} ${each.code}`}>
          <Alert isInline isPlain variant="danger" title={each.message}>
            {each.remedy}
          </Alert>
        </StackItem>
      ))}
    </Stack>
  );
}

interface Part {
  id: string;
  typed: TypedIntent;
  change: (typed: TypedIntent) => void;
}

function May({ id, typed, change }: Part) {
  const may = mayOf(typed);
  const set = (means: Means, on: boolean) =>
    change({
      ...typed,
      may: meansNames.filter((each) => (each === means ? on : may.includes(each))),
    });
  return (
    <FormGroup role="group" label="May use" fieldId={`${id}-may`}>
      <Flex>
        {meansNames.map((means) => (
          <FlexItem key={means}>
            <Checkbox
              id={`${id}-may-${means}`}
              label={MEANS[means]}
              isChecked={may.includes(means)}
              onChange={(_event, on) => set(means, on)}
            />
          </FlexItem>
        ))}
      </Flex>
    </FormGroup>
  );
}

/** The order is that in which they are chosen. */
function Relax({ id, named, typed, change }: Part & { named: readonly Goal[] }) {
  const place = (goal: Goal) => typed.relax.filter((each) => named.includes(each)).indexOf(goal);
  return (
    <FormGroup role="group" label="Give up first, then" fieldId={`${id}-relax`}>
      <Flex>
        {named.map((goal) => (
          <FlexItem key={goal}>
            <Checkbox
              id={`${id}-relax-${goal}`}
              label={`${GOALS[goal].label}${place(goal) < 0 ? "" : ` (${place(goal) + 1})`}`}
              isChecked={place(goal) >= 0}
              onChange={(_event, on) =>
                change({
                  ...typed,
                  relax: on ? [...typed.relax, goal] : typed.relax.filter((each) => each !== goal),
                })
              }
            />
          </FlexItem>
        ))}
      </Flex>
    </FormGroup>
  );
}

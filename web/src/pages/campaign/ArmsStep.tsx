import {
  Button,
  Form,
  FormFieldGroup,
  FormFieldGroupHeader,
  FormSelect,
  FormSelectOption,
  InputGroup,
  InputGroupItem,
  TextInput,
} from "@patternfly/react-core";
import TimesIcon from "@patternfly/react-icons/dist/esm/icons/times-icon";
import { useQuery } from "@tanstack/react-query";
import type { ProblemItem } from "../../api/client";
import { tunables } from "../../api/queries";
import { Alert } from "../../components/layout/Alert";
import { ProfileOrNone } from "../bench/ProfileOrNone";
import { TestbedAndQemu } from "../bench/TestbedAndQemu";
import { type DraftArm, type DraftValue, newArm, problemsOf } from "./draft";
import { Field } from "./Field";

const MAX_ARMS = 16;
const LEAST_ARMS = 2;

/** What is held against each other; the first is what the others are compared with. */
export function ArmsStep({
  arms,
  same,
  problems,
  change,
}: {
  arms: readonly DraftArm[];
  same: boolean;
  problems: readonly ProblemItem[];
  change: (arms: readonly DraftArm[]) => void;
}) {
  const replace = (key: number, part: Partial<DraftArm>) =>
    change(arms.map((arm) => (arm.key === key ? { ...arm, ...part } : arm)));
  const add = () => change([...arms, newArm(Math.max(...arms.map((arm) => arm.key)) + 1)]);
  return (
    <Form onSubmit={(event) => event.preventDefault()}>
      {problems
        .filter((each) => each.field === "arms")
        .map((each) => (
          <p key={each.message}>{each.message}</p>
        ))}
      {same && (
        <Alert isInline variant="info" title="All arms are the same so far">
          This campaign measures the noise of the machine.
        </Alert>
      )}
      {arms.map((arm, index) => (
        <ArmFields
          key={arm.key}
          arm={arm}
          index={index}
          problems={problems}
          change={(part) => replace(arm.key, part)}
          remove={
            arms.length > LEAST_ARMS
              ? () => change(arms.filter((each) => each.key !== arm.key))
              : null
          }
        />
      ))}
      <div>
        <Button variant="secondary" isDisabled={arms.length >= MAX_ARMS} onClick={add}>
          Add an arm
        </Button>
      </div>
    </Form>
  );
}

function ArmFields({
  arm,
  index,
  problems,
  change,
  remove,
}: {
  arm: DraftArm;
  index: number;
  problems: readonly ProblemItem[];
  change: (part: Partial<DraftArm>) => void;
  remove: (() => void) | null;
}) {
  const field = `arms.${index}`;
  const id = `arm-${arm.key}`;
  const called = arm.name || `arm ${index + 1}`;
  const own = ["name", "profile", "values"].map((part) => `${field}.${part}`);
  const others = problemsOf(problems, field).filter(
    (each) => !own.some((part) => each.field.startsWith(part)),
  );
  return (
    <FormFieldGroup
      role="group"
      aria-labelledby={`${id}-title`}
      header={
        <FormFieldGroupHeader
          titleText={{
            text: index === 0 ? `Arm 1, the base of the comparison` : `Arm ${index + 1}`,
            id: `${id}-title`,
          }}
          actions={
            remove && (
              <Button variant="link" onClick={remove} aria-label={`Remove ${called}`}>
                Remove
              </Button>
            )
          }
        />
      }
    >
      <Field
        label="Name"
        id={`${id}-name`}
        required
        problems={arm.name ? problemsOf(problems, `${field}.name`) : []}
      >
        <TextInput
          id={`${id}-name`}
          isRequired
          value={arm.name}
          onChange={(_event, name) => change({ name })}
        />
      </Field>
      <Field
        label="Profile"
        id={`${id}-profile`}
        problems={problemsOf(problems, `${field}.profile`)}
        help="Its current revision is fixed when the campaign starts"
      >
        <ProfileOrNone
          id={`${id}-profile`}
          value={arm.profile}
          choose={(profile) => change({ profile })}
        />
      </Field>
      <Values
        id={id}
        called={called}
        values={arm.values}
        problems={problemsOf(problems, `${field}.values`)}
        change={(values) => change({ values })}
      />
      <TestbedAndQemu id={id} testbed={arm.testbed} qemu={arm.qemu} choose={change} />
      {others.map((each) => (
        <p key={`${each.field} ${each.message}`} role="alert">
          {each.message}
          {each.remedy && `: ${each.remedy}`}
        </p>
      ))}
    </FormFieldGroup>
  );
}

function Values({
  id,
  called,
  values,
  problems,
  change,
}: {
  id: string;
  called: string;
  values: readonly DraftValue[];
  problems: readonly ProblemItem[];
  change: (values: readonly DraftValue[]) => void;
}) {
  const table = useQuery(tunables);
  const replace = (index: number, part: Partial<DraftValue>) =>
    change(values.map((each, at) => (at === index ? { ...each, ...part } : each)));
  return (
    <Field
      label="Values that override the profile"
      id={`${id}-values`}
      group
      problems={problems}
      help="Such as on, 8, 64Mi, 300ms"
    >
      {values.map((each, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row is its place until it is chosen
        <InputGroup key={index}>
          <InputGroupItem isFill>
            <FormSelect
              aria-label={`Tunable ${index + 1} of ${called}`}
              value={each.tunable}
              onChange={(_event, tunable) => replace(index, { tunable })}
            >
              <FormSelectOption value="" label="Choose a tunable" isPlaceholder />
              {(table.data ?? []).map((row) => (
                <FormSelectOption key={row.name} value={row.name} label={row.name} />
              ))}
            </FormSelect>
          </InputGroupItem>
          <InputGroupItem>
            <TextInput
              aria-label={`Value ${index + 1} of ${called}`}
              value={each.value}
              onChange={(_event, value) => replace(index, { value })}
            />
          </InputGroupItem>
          <InputGroupItem>
            <Button
              variant="control"
              icon={<TimesIcon />}
              aria-label={`Remove tunable ${index + 1} of ${called}`}
              onClick={() => change(values.filter((_each, at) => at !== index))}
            />
          </InputGroupItem>
        </InputGroup>
      ))}
      <Button
        variant="link"
        isInline
        onClick={() => change([...values, { tunable: "", value: "" }])}
      >
        Set a tunable
      </Button>
    </Field>
  );
}

import {
  Button,
  Flex,
  FlexItem,
  Form,
  FormGroup,
  Grid,
  GridItem,
  TextArea,
  TextInput,
  Title,
} from "@patternfly/react-core";
import { type FormEvent, useState } from "react";
import { Link } from "react-router";
import { ApiError, type Schemas } from "../../api/client";
import { IntentFields } from "../../components/forms/IntentFields";
import { StickyActions } from "../../components/forms/StickyActions";
import { Alert } from "../../components/layout/Alert";
import { Failure } from "../../components/layout/Async";
import { counted } from "../../components/text/format";
import { Begin } from "./Begin";
import { StepsEditor } from "./StepsEditor";
import { TryOnVm } from "./TryOnVm";
import type { Remarks } from "./TunableField";
import { TunableGroups } from "./TunableGroups";
import { placeOf, type Source } from "./typed";
import { useEdited } from "./useEdited";
import { type Fault, Wrong } from "./Wrong";

type Tunable = Schemas["TunableView"];

/** What a step may set while disks are copied. */
const OF_COPIES = "copy_synchronous_writes";

/**
 * What is set, by subject; the service checks it as one types, and plans it for a VM.
 *
 * @param old the profile that is changed; null for a new one.
 * @param begun what a new one begins with.
 */
export function ProfileForm({
  tunables,
  old,
  begun,
  saved,
}: {
  tunables: readonly Tunable[];
  old: Schemas["ProfileView"] | null;
  begun: Source | null;
  /** *vm* is where it was applied to as well. */
  saved: (name: string, vm: string | null) => unknown;
}) {
  const edit = useEdited(old, begun, saved);
  const [sought, setSought] = useState<{ tunable: string; count: number } | null>(null);
  const { based, values, steps, check, save, plan, trial, problems, refused } = edit;
  const settable = tunables.filter((each) => !each.read_only);
  const elsewhere = save.error instanceof ApiError && save.error.status === 412;
  const findings = plan.data?.findings ?? [];
  const remarks = (tunable: string): Remarks => ({
    text: check.data?.texts[tunable],
    problem: problems.find((each) => each.field === `values.${tunable}`),
    notes: values[tunable] === undefined ? [] : edit.notes.filter((n) => n.tunable === tunable),
    findings: findings.filter((each) => each.tunable === tunable),
  });
  const faults: Fault[] = [
    ...problems.flatMap((each) => {
      const place = placeOf(each.field, tunables);
      return place ? [{ ...place, text: [each.message, each.remedy].join(". ") }] : [];
    }),
    ...findings
      .filter((each) => each.severity === "blocker")
      .map((each) => ({
        title: `${edit.titleOf(each.tunable, tunables)} on ${trial.vm?.name ?? "the VM"}`,
        text: each.message,
        tunable: each.tunable,
      })),
  ];
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(null);
  };
  const impossible = refused || (based === null && edit.name === "");
  const set = Object.keys(values).length;
  const verb = based === null ? "Create" : "Save";
  return (
    <Form onSubmit={submit}>
      <Grid hasGutter>
        {based === null && (
          <GridItem md={4}>
            <FormGroup label="Name" isRequired fieldId="profile-name">
              <TextInput
                id="profile-name"
                isRequired
                value={edit.name}
                onChange={(_event, typed) => edit.setName(typed)}
              />
            </FormGroup>
          </GridItem>
        )}
        <GridItem md={based === null ? 8 : 12}>
          <FormGroup label="Description" fieldId="profile-description">
            <TextInput
              id="profile-description"
              value={edit.description}
              onChange={(_event, typed) => edit.setDescription(typed)}
            />
          </FormGroup>
        </GridItem>
      </Grid>
      {based === null && edit.untouched && <Begin begin={edit.begin} />}
      <Title headingLevel="h2">Values</Title>
      <TunableGroups
        tunables={settable}
        values={values}
        remarks={remarks}
        sought={sought}
        change={edit.change}
      />
      <div>
        <Title headingLevel="h2">Convergence steps</Title>
        <small>Executed in this order, once each, during pre-copy</small>
      </div>
      <StepsEditor
        steps={steps}
        settable={tunables.filter((each) => each.running || each.name === OF_COPIES)}
        problems={problems}
        change={edit.setSteps}
      />
      <div>
        <Title headingLevel="h2">Intent</Title>
        <small>What migrations with this profile may cost; steps are not needed then</small>
      </div>
      <IntentFields
        id="profile-intent"
        typed={edit.intent}
        change={edit.setIntent}
        problems={problems}
      />
      <TryOnVm what="This profile" trial={trial} choose={edit.setTrial} plan={plan} />
      <FormGroup label="Reason of the change" fieldId="profile-note">
        <TextArea
          id="profile-note"
          value={edit.note}
          onChange={(_event, typed) => edit.setNote(typed)}
          resizeOrientation="vertical"
        />
      </FormGroup>
      {elsewhere && (
        <Alert isInline variant="warning" title="Another user has changed this profile meanwhile">
          Your change was not saved. Open the profile in another tab to see the changes, and enter
          yours again there.
        </Alert>
      )}
      {save.error && !elsewhere && <Failure error={save.error} inline />}
      <StickyActions>
        <Wrong
          faults={faults}
          lead={(tunable) => setSought({ tunable, count: (sought?.count ?? 0) + 1 })}
        />
        <Flex alignItems={{ default: "alignItemsCenter" }}>
          <FlexItem>
            <Button type="submit" isLoading={save.isPending} isDisabled={impossible}>
              {based === null ? "Create" : "Save as a new revision"}
            </Button>
          </FlexItem>
          {trial.vm && (
            <FlexItem>
              <Button
                variant="secondary"
                isDisabled={impossible || save.isPending || !edit.appliable}
                onClick={() => save.mutate(trial.vm)}
              >
                {verb} and apply to {trial.vm.name}
              </Button>
            </FlexItem>
          )}
          <FlexItem>
            <Link to={based === null ? "/profiles" : `/profiles/${based.name}`}>Cancel</Link>
          </FlexItem>
          <FlexItem>
            <small>
              {counted(set, "value")}, {counted(steps.length, "step")}
            </small>
          </FlexItem>
        </Flex>
      </StickyActions>
    </Form>
  );
}

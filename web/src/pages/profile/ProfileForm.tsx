import {
  Alert,
  Button,
  Form,
  FormFieldGroup,
  FormFieldGroupHeader,
  FormGroup,
  TextArea,
  TextInput,
} from "@patternfly/react-core";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "react";
import { checkValues, createProfile, replaceProfile } from "../../api/actions";
import { ApiError, type Schemas } from "../../api/client";
import { Failure } from "../../components/Async";
import { useSettled } from "../../components/settled";
import { useToasts } from "../../components/toasts";
import { StepsEditor } from "./StepsEditor";
import { asStep, edited } from "./steps";
import { TunableField } from "./TunableField";

type Tunable = Schemas["TunableView"];
type Profile = Schemas["ProfileView"];

const ROUTES: Record<Tunable["route"], string> = {
  migrate: "Set for each migration",
  monitor: "Set immediately, through the monitor",
  live: "Set immediately, in the running QEMU",
  running: "Set during a migration",
  boot: "Set for the VM's next start",
  host: "Host limits",
  control: "Actions of vmtune during a migration",
};

/** Every tunable by its route; rules between them are checked by the service as one types. */
export function ProfileForm({
  tunables,
  old,
  saved,
}: {
  tunables: readonly Tunable[];
  old: Profile | null;
  saved: (name: string) => unknown;
}) {
  const [based] = useState(old); // what is edited does not change under the editor
  const [name, setName] = useState("");
  const [description, setDescription] = useState(based?.description ?? "");
  const [note, setNote] = useState("");
  const [values, setValues] = useState(() => asTyped(based?.values ?? {}));
  const [steps, setSteps] = useState(() => (based?.steps ?? []).map(edited));
  const toasts = useToasts();
  const queries = useQueryClient();

  const typed = useMemo(() => ({ values, steps: steps.map(asStep) }), [values, steps]);
  const settled = useSettled(typed, 250);
  const check = useQuery({
    queryKey: ["check", settled],
    queryFn: () => checkValues(settled.values, settled.steps),
    retry: false,
    placeholderData: keepPreviousData,
  });
  const save = useMutation({
    mutationFn: () =>
      based === null
        ? createProfile({ name, ...typed, description, note })
        : replaceProfile(based.name, based.revision, { ...typed, description, note }),
    onSuccess: (stored) => {
      queries.setQueryData(["profile", "one", stored.name], stored);
      toasts.done(`${stored.name} is saved`, `Revision ${stored.revision}`);
      return saved(stored.name);
    },
  });

  const problems = [check.error, save.error].flatMap((error) =>
    error instanceof ApiError ? error.problems : [],
  );
  // What nobody could judge may be right: saving it tells that nobody answers.
  const refused = check.error !== null && !(check.error instanceof ApiError && check.error.lost);
  const of = (tunable: string) => problems.find((problem) => problem.field === `values.${tunable}`);
  const elsewhere = save.error instanceof ApiError && save.error.status === 412;
  const settable = tunables.filter((each) => !each.read_only);
  const routes = [...new Set(settable.map((each) => each.route))];
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Form onSubmit={submit} isWidthLimited>
      {based === null && (
        <FormGroup label="Name" isRequired fieldId="profile-name">
          <TextInput
            id="profile-name"
            isRequired
            value={name}
            onChange={(_event, typed) => setName(typed)}
          />
        </FormGroup>
      )}
      <FormGroup label="Description" fieldId="profile-description">
        <TextInput
          id="profile-description"
          value={description}
          onChange={(_event, typed) => setDescription(typed)}
        />
      </FormGroup>
      {routes.map((route) => {
        const rows = settable.filter((each) => each.route === route);
        const set = rows.filter((each) => values[each.name] !== undefined).length;
        return (
          <FormFieldGroup
            key={route}
            header={
              <FormFieldGroupHeader
                titleText={{ text: ROUTES[route], id: `route-${route}` }}
                titleDescription={`${set} of ${rows.length} set`}
              />
            }
          >
            {rows.map((row) => (
              <TunableField
                key={row.name}
                tunable={row}
                value={values[row.name]}
                text={check.data?.texts[row.name]}
                problem={of(row.name)}
                change={(value) => setValues((before) => changed(before, row.name, value))}
              />
            ))}
          </FormFieldGroup>
        );
      })}
      <FormFieldGroup
        header={
          <FormFieldGroupHeader
            titleText={{ text: "Convergence steps", id: "steps-title" }}
            titleDescription="Executed in this order, once each, during pre-copy"
          />
        }
      >
        <StepsEditor
          steps={steps}
          settable={tunables.filter((each) => each.running)}
          problems={problems}
          change={setSteps}
        />
      </FormFieldGroup>
      <FormGroup label="Reason of the change" fieldId="profile-note">
        <TextArea
          id="profile-note"
          value={note}
          onChange={(_event, typed) => setNote(typed)}
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
      <div>
        <Button
          type="submit"
          isLoading={save.isPending}
          isDisabled={refused || (based === null && name === "")}
        >
          {based === null ? "Create" : "Save as a new revision"}
        </Button>
      </div>
    </Form>
  );
}

type Typed = Record<string, string>;

function asTyped(values: Profile["values"]): Typed {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === "boolean" ? (value ? "on" : "off") : String(value),
    ]),
  );
}

function changed(before: Typed, name: string, value: string | undefined): Typed {
  const { [name]: _old, ...rest } = before;
  return value === undefined ? rest : { ...rest, [name]: value };
}

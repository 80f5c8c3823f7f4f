import {
  Button,
  Card,
  CardBody,
  CardTitle,
  Form,
  FormGroup,
  FormSelect,
  FormSelectOption,
  Stack,
  StackItem,
  TextInput,
} from "@patternfly/react-core";
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link } from "react-router";
import { addAssignment, removeAssignment } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { assignments } from "../../api/queries";
import { useToasts } from "../../components/dialogs/toasts";
import { NO_INTENT, stated } from "../../components/forms/intent";
import { Failure } from "../../components/layout/Async";
import { IntentSection } from "../../components/migration/IntentSection";
import { ListTable, PagedList } from "../../components/tables/ListTable";
import { TARGETS } from "./targets";

type Target = Schemas["Target"];

/** Which VMs get this profile. A VM's own assignment wins over labels, those over its host's. */
export function Assignments({ profile, intent }: { profile: string; intent: string }) {
  const list = useInfiniteQuery(assignments(profile));
  const toasts = useToasts();
  const [target, setTarget] = useState<Target>("selector");
  const [key, setKey] = useState("");
  const [goals, setGoals] = useState(NO_INTENT);
  const add = useMutation({
    mutationFn: () => {
      const own = stated(goals);
      return addAssignment({
        target,
        key: target === "default" ? "" : key,
        profile,
        ...(own === null ? {} : { intent: { ...own } }),
      });
    },
    onSuccess: () => {
      setKey("");
      setGoals(NO_INTENT);
    },
  });
  const remove = useMutation({
    mutationFn: removeAssignment,
    onError: (error) => toasts.failed("Removing the assignment failed", error),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.mutate();
  };
  return (
    <Card>
      <CardTitle component="h2">Assignments</CardTitle>
      <CardBody>
        <Stack hasGutter>
          {intent && (
            <StackItem>
              VMs that it is assigned to migrate by its intent: {intent}. An assignment’s own counts
              instead.
            </StackItem>
          )}
          <StackItem>
            <PagedList list={list} lines={2} empty={<p>No assignments.</p>}>
              {(rows) => (
                <ListTable
                  label="Assignments"
                  rows={rows}
                  name={(each) => each.id}
                  columns={[
                    { title: "For", cell: (each) => TARGETS[each.target].label },
                    { title: "Which", text: "breaks", cell: (each) => <Which assignment={each} /> },
                    {
                      title: "Intent",
                      text: "breaks",
                      cell: (each) => each.intent?.text ?? (intent ? "the profile’s" : "–"),
                    },
                    {
                      title: "Actions",
                      actions: true,
                      cell: (each) => (
                        <Button variant="link" size="sm" onClick={() => remove.mutate(each.id)}>
                          Remove
                        </Button>
                      ),
                    },
                  ]}
                />
              )}
            </PagedList>
          </StackItem>
          <StackItem>
            <Form isWidthLimited onSubmit={submit}>
              <FormGroup label="Assign to" fieldId="assign-target">
                <FormSelect
                  id="assign-target"
                  value={target}
                  onChange={(_event, chosen) => setTarget(chosen as Target)}
                >
                  {Object.entries(TARGETS).map(([value, { label }]) => (
                    <FormSelectOption key={value} value={value} label={label} />
                  ))}
                </FormSelect>
              </FormGroup>
              {target !== "default" && (
                <FormGroup label="Which" isRequired fieldId="assign-key">
                  <TextInput
                    id="assign-key"
                    value={key}
                    placeholder={TARGETS[target].placeholder}
                    onChange={(_event, typed) => setKey(typed)}
                  />
                </FormGroup>
              )}
              <IntentSection id="assign-intent" typed={goals} change={setGoals} />
              {add.error && <Failure error={add.error} inline />}
              <div>
                <Button
                  type="submit"
                  variant="secondary"
                  isLoading={add.isPending}
                  isDisabled={target !== "default" && key === ""}
                >
                  Assign
                </Button>
              </div>
            </Form>
          </StackItem>
        </Stack>
      </CardBody>
    </Card>
  );
}

function Which({ assignment: { target, key } }: { assignment: Schemas["AssignmentView"] }) {
  if (target === "vm") return <Link to={`/vms/${key}`}>{key}</Link>;
  return target === "host" ? <Link to={`/hosts/${key}`}>{key}</Link> : key || "–";
}

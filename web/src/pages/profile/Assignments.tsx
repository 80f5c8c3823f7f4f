import {
  Button,
  Card,
  CardBody,
  CardTitle,
  Form,
  FormGroup,
  FormSelect,
  FormSelectOption,
  TextInput,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { addAssignment, removeAssignment } from "../../api/actions";
import type { Schemas } from "../../api/client";
import { assignments } from "../../api/queries";
import { Async, Failure } from "../../components/Async";
import { More } from "../../components/More";
import { useToasts } from "../../components/toasts";
import { TARGETS } from "./targets";

type Target = Schemas["Target"];

/** Which VMs get this profile. A VM's own assignment wins over labels, those over its host's. */
export function Assignments({ profile }: { profile: string }) {
  const list = useInfiniteQuery(assignments(profile));
  const toasts = useToasts();
  const [target, setTarget] = useState<Target>("selector");
  const [key, setKey] = useState("");
  const add = useMutation({
    mutationFn: () => addAssignment({ target, key: target === "default" ? "" : key, profile }),
    onSuccess: () => setKey(""),
  });
  const remove = useMutation({
    mutationFn: removeAssignment,
    onError: (error) => toasts.failed("The assignment was not removed", error),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.mutate();
  };
  return (
    <Card>
      <CardTitle component="h2">Who gets it</CardTitle>
      <CardBody>
        <Async query={list} lines={2}>
          {(data) => (
            <Table aria-label="Assignments" variant="compact">
              <Thead>
                <Tr>
                  <Th>For</Th>
                  <Th>Which</Th>
                  <Th screenReaderText="Actions" />
                </Tr>
              </Thead>
              <Tbody>
                {data.pages
                  .flatMap((page) => page.items)
                  .map((each) => (
                    <Tr key={each.id}>
                      <Td dataLabel="For">{TARGETS[each.target].label}</Td>
                      <Td dataLabel="Which">{each.key || "–"}</Td>
                      <Td isActionCell>
                        <Button variant="link" isInline onClick={() => remove.mutate(each.id)}>
                          Remove
                        </Button>
                      </Td>
                    </Tr>
                  ))}
              </Tbody>
            </Table>
          )}
        </Async>
        <More list={list} />
        <Form onSubmit={submit}>
          <FormGroup label="Give it to" fieldId="assign-target">
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
      </CardBody>
    </Card>
  );
}

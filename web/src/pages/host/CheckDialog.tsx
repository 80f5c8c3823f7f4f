import {
  Button,
  FormGroup,
  FormSelect,
  FormSelectOption,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { hostCheck } from "../../api/hosts";
import { hosts } from "../../api/queries";
import { Labelled, type Look } from "../../components/labels/StateLabel";
import { Async } from "../../components/layout/Async";
import { type ColumnOf, ListTable, rowsOf } from "../../components/tables/ListTable";
import { Said } from "../../components/text/Said";

type Step = Schemas["CheckStepView"];

const LOOK: Record<Step["result"], Look> = {
  ok: "success",
  warning: "warning",
  failed: "danger",
  "not checked": undefined,
};
const COLUMNS: readonly ColumnOf<Step>[] = [
  { title: "What", cell: (each) => each.what },
  { title: "Host", text: "short", cell: (each) => each.host },
  {
    title: "Result",
    text: "short",
    cell: (each) => <Labelled look={LOOK[each.result]}>{each.result}</Labelled>,
  },
  {
    title: "Details",
    text: "breaks",
    cell: (each) => (
      <>
        <Said>{each.message}</Said>{" "}
        {each.remedy && (
          <em>
            <Said>{each.remedy}</Said>
          </em>
        )}
      </>
    ),
  },
];

/** What a migration needs of a host, or of the way to another one, tried now. */
export function CheckDialog({ name, close }: { name: string; close: () => void }) {
  const [to, setTo] = useState("");
  const check = useQuery(hostCheck(name, to));
  const list = useInfiniteQuery(hosts);
  const others = (list.data ? rowsOf(list.data) : []).filter((each) => each.name !== name);
  return (
    <Modal isOpen variant="large" aria-labelledby="check-title" onClose={close}>
      <ModalHeader
        labelId="check-title"
        title={`Check of ${name}`}
        description="What a migration needs, tried by a new connection. Changes nothing."
      />
      <ModalBody tabIndex={0}>
        <Stack hasGutter>
          <StackItem>
            <FormGroup label="Migrations to" fieldId="check-to">
              <FormSelect id="check-to" value={to} onChange={(_event, chosen) => setTo(chosen)}>
                <FormSelectOption value="" label="This host only" />
                {others.map((each) => (
                  <FormSelectOption key={each.name} value={each.name} label={each.name} />
                ))}
              </FormSelect>
            </FormGroup>
          </StackItem>
          <StackItem>
            <Async query={check} lines={6}>
              {(data) => (
                <>
                  <p role="status">
                    <Labelled look={data.passed ? "success" : "danger"}>
                      {data.passed ? "no step failed" : "failed"}
                    </Labelled>
                  </p>
                  <ListTable
                    label="Steps"
                    columns={COLUMNS}
                    rows={data.steps}
                    name={(each) => `${each.host} ${each.what}`}
                  />
                </>
              )}
            </Async>
          </StackItem>
        </Stack>
      </ModalBody>
      <ModalFooter>
        <Button isLoading={check.isFetching} onClick={() => void check.refetch()}>
          Check again
        </Button>
        <Button variant="link" onClick={close}>
          Close
        </Button>
      </ModalFooter>
    </Modal>
  );
}

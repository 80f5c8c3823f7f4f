import {
  Button,
  Form,
  FormGroup,
  Label,
  LabelGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from "@patternfly/react-core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { setLabels } from "../../api/tuning";
import { useToasts } from "../../components/dialogs/toasts";
import { TextField } from "../../components/forms/TextField";
import { Failure } from "../../components/layout/Async";
import { labelChanges } from "../vms/labels";

type Labels = Readonly<Record<string, string>>;

/** Adds, changes and removes labels of one VM; nothing is stored before Save. */
export function LabelsDialog({
  vm,
  name,
  labels,
  close,
}: {
  vm: string;
  name: string;
  labels: Labels;
  close: () => void;
}) {
  const id = useId();
  const [kept, setKept] = useState<Labels>(labels);
  const [typed, setTyped] = useState("");
  const queries = useQueryClient();
  const toasts = useToasts();
  const { changes, faults } = labelChanges(typed);
  const next = Object.fromEntries(
    Object.entries({ ...kept, ...changes }).filter(
      (each): each is [string, string] => each[1] !== null,
    ),
  );
  const save = useMutation({
    mutationFn: () => setLabels(vm, next),
    onSuccess: async () => {
      toasts.done(`The labels of ${name} are changed`);
      close();
      await queries.invalidateQueries({ queryKey: ["vm"] });
    },
  });
  const remove = (key: string) =>
    setKept((before) => Object.fromEntries(Object.entries(before).filter(([k]) => k !== key)));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (faults.length === 0) save.mutate();
  };
  return (
    <Modal isOpen variant="small" aria-labelledby={id} onClose={close}>
      <ModalHeader labelId={id} title={`Labels of ${name}`} />
      <ModalBody>
        <Form id={`${id}-form`} onSubmit={submit}>
          {Object.keys(next).length > 0 && (
            <FormGroup role="group" label="Labels" fieldId={`${id}-labels`}>
              <LabelGroup aria-label="Labels" numLabels={20}>
                {Object.entries(next).map(([key, value]) => (
                  <Label
                    key={key}
                    variant="outline"
                    {...(key in changes
                      ? { color: "blue" as const }
                      : { onClose: () => remove(key), closeBtnAriaLabel: `Remove ${key}` })}
                  >
                    {key}={value}
                  </Label>
                ))}
              </LabelGroup>
            </FormGroup>
          )}
          <TextField
            id={`${id}-add`}
            label="Add or change"
            help="As in tier=db zone=a. Assignments choose VMs by their labels."
            fault={faults.length > 0 ? `${faults.join(", ")}: write tier=db` : ""}
            value={typed}
            change={setTyped}
          />
          {save.error && <Failure error={save.error} inline />}
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button
          type="submit"
          form={`${id}-form`}
          isLoading={save.isPending}
          isDisabled={faults.length > 0}
        >
          Save
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  );
}

import { Form, FormGroup, FormHelperText, TextInput } from "@patternfly/react-core";
import { useState } from "react";
import { Confirm } from "../dialogs/Confirm";
import type { Control } from "./controls";

/**
 * Says what *control* will do to a running migration, and asks for its value.
 *
 * @param vm names the VM, where the page is not of its migration.
 * @param suggestion the value to begin with.
 */
export function ChangeDialog({
  vm,
  control,
  suggestion,
  close,
  confirm,
}: {
  vm?: string;
  control: Control;
  suggestion: string;
  close: () => void;
  confirm: (value: string) => void;
}) {
  const [value, setValue] = useState(suggestion);
  const { action, label, effect, set } = control;
  const title = vm === undefined ? action : `${action} of ${vm}`;
  return (
    <Confirm
      title={control.do ? `${title}?` : title}
      action={control.do ? action : "Change now"}
      danger={control.do !== undefined}
      impossible={set !== undefined && value.trim() === ""}
      close={close}
      confirm={() => confirm(value.trim())}
    >
      <Form onSubmit={(event) => event.preventDefault()}>
        <p>{effect}</p>
        {set && (
          <FormGroup label={label} fieldId="change-value">
            <TextInput
              id="change-value"
              value={value}
              onChange={(_event, typed) => setValue(typed)}
            />
            <FormHelperText>
              Holds for this migration. It is recorded like a step, and undone if the migration does
              not complete.
            </FormHelperText>
          </FormGroup>
        )}
      </Form>
    </Confirm>
  );
}

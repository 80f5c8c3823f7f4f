import {
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
  TextInput,
} from "@patternfly/react-core";

/** A text to type, with its help, or what is wrong with it, below. */
export function TextField({
  id,
  label,
  help,
  type = "text",
  required = false,
  fault = "",
  value,
  change,
}: {
  id: string;
  label: string;
  help: string;
  type?: "text" | "date";
  required?: boolean;
  fault?: string;
  value: string;
  change: (value: string) => void;
}) {
  return (
    <FormGroup label={label} fieldId={id} isRequired={required}>
      <TextInput
        id={id}
        type={type}
        isRequired={required}
        value={value}
        validated={fault ? "error" : "default"}
        aria-describedby={`${id}-help`}
        onChange={(_event, typed) => change(typed)}
      />
      <FormHelperText>
        <HelperText id={`${id}-help`}>
          <HelperTextItem variant={fault ? "error" : "default"}>{fault || help}</HelperTextItem>
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
}

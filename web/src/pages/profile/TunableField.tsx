import {
  Button,
  Flex,
  FlexItem,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  TextInput,
} from "@patternfly/react-core";
import type { Schemas } from "../../api/client";

type Tunable = Schemas["TunableView"];

/** One tunable as it is typed: text as people write it (64Mi, 300ms), on, off, or unset. */
export function TunableField({
  tunable,
  value,
  text,
  problem,
  change,
}: {
  tunable: Tunable;
  value: string | undefined;
  text: string | undefined;
  problem: Schemas["ProblemItem"] | undefined;
  change: (value: string | undefined) => void;
}) {
  const id = `tunable-${tunable.name}`;
  const choices = tunable.kind === "boolean" ? ["on", "off"] : tunable.choices;
  const own = `QEMU's default: ${tunable.default?.text ?? "depends on host or VM"}`;
  const told = problem
    ? `${problem.message}. ${problem.remedy}`
    : value === undefined
      ? `${choices.length > 0 ? "" : `${tunable.allowed}; `}unset: ${own}`
      : text && text !== value
        ? text
        : tunable.allowed;
  return (
    <FormGroup label={tunable.title} fieldId={id}>
      <Flex flexWrap={{ default: "nowrap" }}>
        <FlexItem grow={{ default: "grow" }}>
          {choices.length > 0 ? (
            <FormSelect
              id={id}
              value={value ?? ""}
              validated={problem ? "error" : "default"}
              aria-describedby={`${id}-help`}
              onChange={(_event, chosen) => change(chosen || undefined)}
            >
              <FormSelectOption value="" label="unset" />
              {choices.map((choice) => (
                <FormSelectOption key={choice} value={choice} label={choice} />
              ))}
            </FormSelect>
          ) : (
            <TextInput
              id={id}
              value={value ?? ""}
              placeholder={`unset; for example ${tunable.examples || tunable.allowed}`}
              validated={problem ? "error" : "default"}
              aria-describedby={`${id}-help`}
              onChange={(_event, typed) => change(typed === "" ? undefined : typed)}
            />
          )}
        </FlexItem>
        {value !== undefined && (
          <FlexItem>
            <Button
              variant="link"
              aria-label={`Unset ${tunable.title}`}
              onClick={() => change(undefined)}
            >
              Unset
            </Button>
          </FlexItem>
        )}
      </Flex>
      <FormHelperText>
        <HelperText id={`${id}-help`} {...(problem ? { isLiveRegion: true } : {})}>
          <HelperTextItem variant={problem ? "error" : "default"}>{told}</HelperTextItem>
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
}

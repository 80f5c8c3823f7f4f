import {
  Button,
  Content,
  Flex,
  FlexItem,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  Grid,
  GridItem,
  HelperText,
  HelperTextItem,
  type HelperTextItemProps,
  TextInput,
} from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { sentence } from "../../components/text/format";

type Tunable = Schemas["TunableView"];
type Look = NonNullable<HelperTextItemProps["variant"]>;

const FINDING: Record<Schemas["Severity"], Look> = {
  blocker: "error",
  warning: "warning",
  info: "indeterminate",
};

/** What is known of a value. */
export interface Remarks {
  /** The accepted value as people read it. */
  text: string | undefined;
  problem: Schemas["ProblemItem"] | undefined;
  notes: readonly Schemas["ValueNoteView"][];
  /** Of the plan for a VM, where one was chosen. */
  findings: readonly Schemas["FindingView"][];
}

/** One tunable as it is typed: text as people write it (64Mi, 300ms), on, off, or unset. */
export function TunableField({
  tunable,
  value,
  remarks,
  change,
}: {
  tunable: Tunable;
  value: string | undefined;
  remarks: Remarks;
  change: (value: string | undefined) => void;
}) {
  const id = `tunable-${tunable.name}`;
  const choices = tunable.kind === "boolean" ? ["on", "off"] : tunable.choices;
  const { problem } = remarks;
  const blocked = remarks.findings.some((each) => each.severity === "blocker");
  const validated = problem || blocked ? "error" : "default";
  return (
    <Grid hasGutter style={{ marginBlock: "0.5rem 1rem" }}>
      <GridItem lg={6}>
        <FormGroup label={tunable.title} fieldId={id}>
          <Flex flexWrap={{ default: "nowrap" }}>
            <FlexItem grow={{ default: "grow" }}>
              {choices.length > 0 ? (
                <FormSelect
                  id={id}
                  value={value ?? ""}
                  validated={validated}
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
                  placeholder="unset"
                  validated={validated}
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
              {told(tunable, value, remarks).map(({ look, text }) => (
                <HelperTextItem key={text} variant={look}>
                  {text}
                </HelperTextItem>
              ))}
            </HelperText>
          </FormHelperText>
        </FormGroup>
      </GridItem>
      <GridItem lg={6}>
        <Content component="small">
          {tunable.why} <code>{tunable.name}</code>
          {tunable.examples && <>, for example {tunable.examples}</>}. Takes effect{" "}
          {tunable.takes_effect}.
        </Content>
      </GridItem>
    </Grid>
  );
}

function told(
  tunable: Tunable,
  value: string | undefined,
  { text, problem, notes, findings }: Remarks,
): { look: Look; text: string }[] {
  if (problem) return [{ look: "error", text: `${problem.message}. ${sentence(problem.remedy)}` }];
  const said: { look: Look; text: string }[] = [
    ...notes.map((note) => ({
      look: note.kind === "rounded" ? ("indeterminate" as const) : ("warning" as const),
      text: note.message,
    })),
    ...findings.map((finding) => ({
      look: FINDING[finding.severity],
      text: [finding.message, finding.remedy].filter(Boolean).join(": "),
    })),
  ];
  if (value === undefined) {
    const own = `unset: QEMU's default, ${tunable.default?.text ?? "which depends on host or VM"}`;
    const choice = tunable.kind === "boolean" || tunable.choices.length > 0;
    said.push({ look: "default", text: choice ? own : `${tunable.allowed}; ${own}` });
  } else if (text && text.replaceAll(",", "") !== value) {
    said.push({ look: "default", text });
  } else if (said.length === 0) {
    said.push({ look: "default", text: tunable.allowed });
  }
  return said;
}

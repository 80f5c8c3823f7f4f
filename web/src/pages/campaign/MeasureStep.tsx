import { Form, FormSelect, FormSelectOption, TextInput } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { metrics } from "../../api/bench";
import type { ProblemItem } from "../../api/client";
import { Async } from "../../components/layout/Async";
import { type Draft, kindOf, problemsOf } from "./draft";
import { Field } from "./Field";

const NUMBERS = [
  {
    key: "blocks",
    field: "blocks",
    label: "Blocks",
    help: "Each block runs every arm once, in random order. A verdict needs at least 6.",
  },
  {
    key: "margin",
    field: "margin_percent",
    label: "Margin, in percent",
    help: "Smaller differences are equivalent",
  },
  {
    key: "warmUps",
    field: "warmup_runs",
    label: "Warm-up runs",
    help: "Before the first block; not counted",
  },
  {
    key: "seed",
    field: "seed",
    label: "Random seed",
    help: "Empty for a random seed. The same seed gives the same order.",
  },
] as const;

/** What decides about the verdict: it is fixed before the first run. */
export function MeasureStep({
  draft,
  problems,
  change,
}: {
  draft: Draft;
  problems: readonly ProblemItem[];
  change: (part: Partial<Draft>) => void;
}) {
  const table = useQuery(metrics);
  return (
    <Form isWidthLimited onSubmit={(event) => event.preventDefault()}>
      <Async query={table} lines={2}>
        {(rows) => (
          <Field
            label="Primary metric"
            id="campaign-metric"
            required
            problems={problemsOf(problems, "primary_metric")}
            help={rows.find((row) => row.name === draft.metric)?.description ?? ""}
          >
            <FormSelect
              id="campaign-metric"
              value={draft.metric}
              onChange={(_event, metric) => change({ metric })}
            >
              {rows
                .filter((row) => row.better !== "none" && row.kind === kindOf(draft.scenario))
                .map((row) => (
                  <FormSelectOption
                    key={row.name}
                    value={row.name}
                    label={`${row.title} (${row.better} is better)`}
                  />
                ))}
            </FormSelect>
          </Field>
        )}
      </Async>
      {NUMBERS.map(({ key, field, label, help }) => (
        <Field
          key={key}
          label={label}
          id={`campaign-${key}`}
          problems={problemsOf(problems, field)}
          help={help}
        >
          <TextInput
            id={`campaign-${key}`}
            inputMode="decimal"
            value={draft[key]}
            onChange={(_event, typed) => change({ [key]: typed })}
          />
        </Field>
      ))}
    </Form>
  );
}

import {
  Checkbox,
  Form,
  FormGroup,
  FormSelect,
  FormSelectOption,
  FormSelectOptionGroup,
  TextInput,
} from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { references, scenarios } from "../../api/bench";
import type { ProblemItem } from "../../api/client";
import { Async } from "../../components/layout/Async";
import { type Draft, LOADS, type Load, primaryOf, problemsOf } from "./draft";
import { Field } from "./Field";

/** Name, scenario and conditions. */
export function WhatStep({
  draft,
  problems,
  change,
}: {
  draft: Draft;
  problems: readonly ProblemItem[];
  change: (part: Partial<Draft>) => void;
}) {
  const list = useQuery(scenarios({ quick: false, testbed: "direct", qemu: "" }));
  const published = useQuery(references);
  const chosen = list.data?.find((each) => each.name === draft.scenario);
  const toggle = (load: Load, on: boolean) =>
    change({
      loads: (Object.keys(LOADS) as Load[]).filter((each) =>
        each === load ? on : draft.loads.includes(each),
      ),
    });
  return (
    <Form isWidthLimited onSubmit={(event) => event.preventDefault()}>
      <Field
        label="Name"
        id="campaign-name"
        required
        problems={draft.name ? problemsOf(problems, "name") : []}
        help="Lower-case letters, digits, dots, dashes and underscores"
      >
        <TextInput
          id="campaign-name"
          isRequired
          value={draft.name}
          onChange={(_event, name) => change({ name })}
        />
      </Field>
      <Field label="Title" id="campaign-title" problems={problemsOf(problems, "title")}>
        <TextInput
          id="campaign-title"
          value={draft.title}
          onChange={(_event, title) => change({ title })}
        />
      </Field>
      <Async query={list} lines={2}>
        {(items) => (
          <Field
            label="Scenario"
            id="campaign-scenario"
            required
            problems={draft.scenario ? problemsOf(problems, "scenario") : []}
            help={chosen ? chosen.reason || chosen.title : "What each run measures"}
          >
            <FormSelect
              id="campaign-scenario"
              value={draft.scenario}
              onChange={(_event, scenario) => change({ scenario, metric: primaryOf(scenario) })}
            >
              <FormSelectOption value="" label="Choose a scenario" isPlaceholder />
              {[...new Set(items.map((each) => each.family))].map((family) => (
                <FormSelectOptionGroup key={family} label={family}>
                  {items
                    .filter((each) => each.family === family)
                    .map((each) => (
                      <FormSelectOption
                        key={each.name}
                        value={each.name}
                        label={each.applicable ? each.name : `${each.name} (not on this machine)`}
                      />
                    ))}
                </FormSelectOptionGroup>
              ))}
            </FormSelect>
          </Field>
        )}
      </Async>
      <Checkbox
        id="campaign-quick"
        label="Small VM and short times, to try the campaign"
        isChecked={draft.quick}
        onChange={(_event, quick) => change({ quick })}
      />
      <FormGroup role="group" label="Conditions" fieldId="campaign-loads">
        {(Object.keys(LOADS) as Load[]).map((load) => (
          <Checkbox
            key={load}
            id={`campaign-load-${load}`}
            label={LOADS[load]}
            isChecked={draft.loads.includes(load)}
            onChange={(_event, on) => toggle(load, on)}
          />
        ))}
        {problemsOf(problems, "cells").map((each) => (
          <p key={each.message}>{each.message}</p>
        ))}
      </FormGroup>
      <Field
        label="Published table to show next to the results"
        id="campaign-reference"
        problems={problemsOf(problems, "published")}
      >
        <FormSelect
          id="campaign-reference"
          value={draft.reference}
          onChange={(_event, reference) => change({ reference })}
        >
          <FormSelectOption value="" label="None" />
          {(published.data ?? []).map((each) => (
            <FormSelectOption key={each.id} value={each.id} label={each.title} />
          ))}
        </FormSelect>
      </Field>
    </Form>
  );
}

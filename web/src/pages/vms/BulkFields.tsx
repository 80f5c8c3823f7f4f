import {
  Checkbox,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  Grid,
  GridItem,
  HelperText,
  HelperTextItem,
  TextInput,
} from "@patternfly/react-core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { hosts } from "../../api/queries";
import { ProfileChoice } from "../../components/forms/ProfileChoice";
import { TextField } from "../../components/forms/TextField";
import { IntentSection } from "../../components/migration/IntentSection";
import { rowsOf } from "../../components/tables/ListTable";
import { count } from "../../components/text/format";
import type { Draft } from "./draft";
import { labelChanges } from "./labels";
import type { Kind } from "./orders";

const PROFILE: Partial<Record<Kind, string>> = {
  apply: "Each VM's applied profile, else its assigned one",
  assign: "Choose a profile",
  migrate: "Assigned profile",
};

/** What is to be said of an order before it is given. */
export function BulkFields({
  kind,
  total,
  typed,
  change,
}: {
  kind: Kind;
  total: number;
  typed: Draft;
  change: (typed: Draft) => void;
}) {
  const set = (part: Partial<Draft>) => change({ ...typed, ...part });
  const none = PROFILE[kind];
  const faults = labelChanges(typed.labels).faults;
  return (
    <>
      {kind === "migrate" && (
        <Destination value={typed.destination} choose={(destination) => set({ destination })} />
      )}
      {none !== undefined && (
        <FormGroup label="Profile" isRequired={kind === "assign"} fieldId="bulk-profile">
          <ProfileChoice
            id="bulk-profile"
            value={typed.profile}
            none={none}
            choose={(profile) => set({ profile })}
          />
        </FormGroup>
      )}
      {(kind === "migrate" || kind === "assign") && (
        <IntentSection id="bulk-intent" typed={typed.intent} change={(intent) => set({ intent })} />
      )}
      {kind === "label" && (
        <TextField
          id="bulk-labels"
          label="Labels"
          required
          help="As in tier=db zone=a; old- removes the label old. Others stay."
          fault={faults.length > 0 ? `${faults.join(", ")}: write tier=db, or tier-` : ""}
          value={typed.labels}
          change={(labels) => set({ labels })}
        />
      )}
      {kind === "apply" && (
        <Checkbox
          id="bulk-best-effort"
          label="Skip refused values and apply the rest"
          isChecked={typed.bestEffort}
          onChange={(_event, bestEffort) => set({ bestEffort })}
        />
      )}
      <Grid hasGutter>
        <GridItem sm={6}>
          <Limit
            id="bulk-most"
            label={kind === "verify" ? "VMs at most" : "VMs changed at most"}
            value={typed.most}
            change={(most) => set({ most })}
            help={reach(typed.most, total)}
          />
        </GridItem>
        <GridItem sm={6}>
          <Limit
            id="bulk-stop"
            label="Stop after failures"
            value={typed.stopAfter}
            change={(stopAfter) => set({ stopAfter })}
            help="VMs that have begun are finished"
          />
        </GridItem>
      </Grid>
    </>
  );
}

function Destination({ value, choose }: { value: string; choose: (host: string) => void }) {
  const list = useInfiniteQuery(hosts);
  return (
    <FormGroup label="Destination" isRequired fieldId="bulk-destination">
      <FormSelect id="bulk-destination" value={value} onChange={(_event, host) => choose(host)}>
        <FormSelectOption value="" label="Choose a host" isPlaceholder />
        {(list.data ? rowsOf(list.data) : []).map((each) => (
          <FormSelectOption key={each.name} value={each.name} label={each.name} />
        ))}
      </FormSelect>
    </FormGroup>
  );
}

function Limit({
  id,
  label,
  help,
  value,
  change,
}: {
  id: string;
  label: string;
  help: string;
  value: number;
  change: (value: number) => void;
}) {
  return (
    <FormGroup label={label} fieldId={id}>
      <TextInput
        id={id}
        type="number"
        min={1}
        value={Number.isNaN(value) ? "" : value}
        validated={value >= 1 ? "default" : "error"}
        aria-describedby={`${id}-help`}
        onChange={(_event, typed) => change(Number.parseInt(typed, 10))}
      />
      <FormHelperText>
        <HelperText id={`${id}-help`}>
          <HelperTextItem variant={value >= 1 ? "default" : "error"}>
            {value >= 1 ? help : "at least 1"}
          </HelperTextItem>
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
}

/** How many of the chosen VMs that limit leaves. */
function reach(most: number, total: number): string {
  if (most < total) return `${count(total - most)} of ${count(total)} VMs will be left out`;
  if (total === 1) return "The only VM chosen";
  return total === 2 ? "Both VMs" : `All ${count(total)} VMs`;
}

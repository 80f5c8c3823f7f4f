import {
  Checkbox,
  FormGroup,
  FormSelect,
  FormSelectOption,
  Stack,
  StackItem,
} from "@patternfly/react-core";
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { startMigration } from "../../api/actions";
import { ApiError } from "../../api/client";
import { hosts } from "../../api/queries";
import { ProfileChoice } from "../../components/forms/ProfileChoice";
import { IntentSection } from "../../components/migration/IntentSection";
import { rowsOf } from "../../components/tables/ListTable";
import { CopyDisks, copyValues, isOffered, STAY } from "./CopyDisks";
import { IntentPlan } from "./IntentPlan";
import { MigrationForecast } from "./MigrationForecast";
import { PlanDialog, usePlan } from "./PlanDialog";
import { useIntent } from "./useIntent";
import { Virsh } from "./Virsh";

/** Destination and profile, then the preflight; a blocker has to be overridden by name. */
export function MigrateDialog({
  vm,
  name,
  host,
  close,
}: {
  vm: string;
  name: string;
  host: string;
  close: () => void;
}) {
  const [destination, setDestination] = useState("");
  const [profile, setProfile] = useState("");
  const [overrides, setOverrides] = useState<readonly string[]>([]);
  const navigate = useNavigate();
  const list = useInfiniteQuery(hosts);
  const others = (list.data ? rowsOf(list.data) : []).filter((each) => each.name !== host);
  const [copying, setCopying] = useState(STAY);
  const values = copyValues(copying);
  const what = { destination, ...(profile ? { profile } : {}), values };
  const plan = usePlan(vm, what, destination !== "");
  const intent = useIntent(vm, what, profile || (plan.data?.profile ?? ""));
  // Only what stands against this plan: another destination may have other blockers.
  const blockers = plan.data?.blockers ?? [];
  const overridable = blockers.filter((code) =>
    (plan.data?.findings ?? []).every((each) => each.code !== code || each.overridable),
  );
  const overridden = overridable.filter((code) => overrides.includes(code));
  const start = useMutation({
    mutationFn: () => startMigration({ vm, ...what, overrides: overridden, ...intent.order }),
    onSuccess: (migration) => navigate(`/migrations/${migration.id}`),
    onError: (error) => {
      // The guest is measured by now: what can be kept instead is known at once.
      const refused = error instanceof ApiError ? error.problems : [];
      if (refused.some((each) => each.code === "intent_infeasible")) intent.ask();
    },
  });
  const override = (code: string, on: boolean) =>
    setOverrides((old) => (on ? [...old, code] : old.filter((each) => each !== code)));
  return (
    <PlanDialog
      title={`Migrate ${name}`}
      action="Migrate"
      plan={destination === "" ? null : plan}
      byIntent={intent.counts !== null && !intent.shadow}
      ready={plan.data !== undefined && overridden.length === blockers.length}
      act={() => start.mutate()}
      acting={start.isPending}
      error={start.error}
      close={close}
      fields={
        <>
          <FormGroup label="Destination" isRequired fieldId="migrate-destination">
            <FormSelect
              id="migrate-destination"
              value={destination}
              onChange={(_event, chosen) => setDestination(chosen)}
            >
              <FormSelectOption value="" label="Choose a host" isPlaceholder />
              {others.map((each) => (
                <FormSelectOption key={each.name} value={each.name} label={each.name} />
              ))}
            </FormSelect>
          </FormGroup>
          <FormGroup label="Profile" fieldId="migrate-profile">
            <ProfileChoice id="migrate-profile" value={profile} choose={setProfile} />
          </FormGroup>
          <IntentSection
            id="migrate-intent"
            typed={intent.typed}
            change={intent.setTyped}
            problems={intent.problems}
          />
          {intent.counts !== null && (
            <Checkbox
              id="migrate-shadow"
              label="Shadow mode"
              description="Migrate as if there were no intent, and record what would have been done for it."
              isChecked={intent.shadow}
              onChange={(_event, on) => intent.setShadow(on)}
            />
          )}
          {isOffered(plan.data, copying) && (
            <CopyDisks plan={plan.data} copying={copying} choose={setCopying} />
          )}
          {overridable.length > 0 && (
            <FormGroup role="group" label="Override blockers" fieldId="overrides">
              {overridable.map((code) => (
                <Checkbox
                  key={code}
                  id={`override-${code}`}
                  label={`Override ${code}`}
                  isChecked={overrides.includes(code)}
                  onChange={(_event, on) => override(code, on)}
                />
              ))}
            </FormGroup>
          )}
        </>
      }
    >
      <Stack hasGutter>
        {destination !== "" && intent.counts !== null && (
          <StackItem>
            <IntentPlan
              text={intent.inherited}
              found={intent.found}
              asking={intent.asking}
              error={intent.problems.length > 0 ? null : intent.error}
              ask={intent.ask}
              take={intent.take}
            />
          </StackItem>
        )}
        {destination !== "" && (
          <StackItem>
            <MigrationForecast
              key={`${destination} ${profile} ${JSON.stringify(values)}`}
              vm={vm}
              {...{ destination, profile, values }}
            />
          </StackItem>
        )}
        {plan.data?.virsh && (
          <StackItem>
            <Virsh virsh={plan.data.virsh} />
          </StackItem>
        )}
      </Stack>
    </PlanDialog>
  );
}

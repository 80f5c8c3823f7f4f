import { Checkbox, FormGroup, FormSelect, FormSelectOption } from "@patternfly/react-core";
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { startMigration } from "../../api/actions";
import { hosts } from "../../api/queries";
import { rowsOf } from "../../components/ListTable";
import { ProfileChoice } from "../../components/ProfileChoice";
import { CopyDisks, copyValues, isOffered, STAY } from "./CopyDisks";
import { MigrationForecast } from "./MigrationForecast";
import { PlanDialog, usePlan } from "./PlanDialog";
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
  // Only what stands against this plan: another destination may have other blockers.
  const blockers = plan.data?.blockers ?? [];
  const overridden = blockers.filter((code) => overrides.includes(code));
  const start = useMutation({
    mutationFn: () => startMigration({ vm, ...what, overrides: overridden }),
    onSuccess: (migration) => navigate(`/migrations/${migration.id}`),
  });
  const override = (code: string, on: boolean) =>
    setOverrides((old) => (on ? [...old, code] : old.filter((each) => each !== code)));
  return (
    <PlanDialog
      title={`Migrate ${name}`}
      action="Migrate"
      plan={destination === "" ? null : plan}
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
          {isOffered(plan.data, copying) && (
            <CopyDisks plan={plan.data} copying={copying} choose={setCopying} />
          )}
          {blockers.length > 0 && (
            <FormGroup role="group" label="Override blockers" fieldId="overrides">
              {blockers.map((code) => (
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
      {destination !== "" && (
        <MigrationForecast
          key={`${destination} ${profile} ${JSON.stringify(values)}`}
          vm={vm}
          {...{ destination, profile, values }}
        />
      )}
      {plan.data?.virsh && <Virsh virsh={plan.data.virsh} />}
    </PlanDialog>
  );
}

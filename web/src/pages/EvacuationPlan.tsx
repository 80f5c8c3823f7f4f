import {
  Button,
  Checkbox,
  Flex,
  FlexItem,
  Form,
  FormGroup,
  FormSelect,
  FormSelectOption,
  PageSection,
  Stack,
  StackItem,
  TextInput,
} from "@patternfly/react-core";
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { useNavigate, useParams } from "react-router";
import { ApiError, type Schemas } from "../api/client";
import { type Asked, evacuationPlan, startEvacuation } from "../api/evacuations";
import { setMaintenance } from "../api/hosts";
import { host, hosts } from "../api/queries";
import { useToasts } from "../components/dialogs/toasts";
import { NO_INTENT, stated } from "../components/forms/intent";
import { ProfileChoice } from "../components/forms/ProfileChoice";
import { useSettled } from "../components/forms/settled";
import { Alert } from "../components/layout/Alert";
import { Async } from "../components/layout/Async";
import { PageHead } from "../components/layout/PageHead";
import { IntentSection } from "../components/migration/IntentSection";
import { More } from "../components/tables/More";
import { count, counted } from "../components/text/format";
import { EvacuationVms } from "./evacuation/EvacuationVms";
import { LOCAL_DISKS } from "./evacuation/localDisks";
import { Rooms } from "./evacuation/Rooms";

const ORDERS: Record<Schemas["Order"], string> = {
  priority: "By label priority, highest first",
  "largest-first": "Largest first",
  "smallest-first": "Smallest first",
};

/** The codes that are overridden, by the VM's UUID. */
type Overrides = Readonly<Record<string, string[]>>;

const QUIET_MS = 400; // what is being typed plans nothing yet
/** What an evacuation of a host would do; and the button that begins it. */
export default function EvacuationPlanPage() {
  const { name = "" } = useParams();
  const navigate = useNavigate();
  const toasts = useToasts();
  const [order, setOrder] = useState<Schemas["Order"]>("priority");
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [profile, setProfile] = useState("");
  const [stop, setStop] = useState("");
  const [localDisks, setLocalDisks] = useState<Schemas["LocalDisks"]>("profile");
  const [maintain, setMaintain] = useState(true);
  const inMaintenance = useQuery(host(name)).data?.maintenance_since != null;
  const [overrides, setOverrides] = useState<Overrides>({});
  const [intent, setIntent] = useState(NO_INTENT);
  const goals = useMemo(() => stated(intent), [intent]);
  const settled = useSettled(goals, QUIET_MS);
  const asked: Asked = {
    order,
    destinations: [...chosen],
    vm_overrides: overrides,
    ...(settled === null ? {} : { intent: { ...settled } }),
    ...(localDisks === "profile" ? {} : { local_disks: localDisks }),
    ...(profile ? { profile } : {}),
    ...(Number(stop) > 0 ? { stop_after_failures: Number(stop) } : {}),
  };
  const plan = useQuery({ ...evacuationPlan(name, asked), placeholderData: keepPreviousData });
  useEffect(() => setOverrides((old) => withoutRefused(old, plan.error)), [plan.error]);
  const start = useMutation({
    mutationFn: async () => {
      // Before it starts: what others migrate meanwhile shall not come here.
      const begins = maintain && !inMaintenance;
      if (begins) await setMaintenance(name, true);
      try {
        return await startEvacuation(name, asked);
      } catch (error) {
        if (error instanceof ApiError && error.unknown) throw new Unanswered(error);
        // Why it was refused counts, not whether this answers.
        if (begins) await setMaintenance(name, false).catch(() => {});
        throw error;
      }
    },
    onSuccess: (made) => navigate(`/hosts/${encodeURIComponent(name)}/evacuations/${made.id}`),
    onError: (error) => {
      if (error instanceof Unanswered) {
        const maintained = maintain || inMaintenance ? `; ${name} is in maintenance` : "";
        toasts.failed(`The evacuation may have started${maintained}`, error.cause);
        return;
      }
      toasts.failed("The evacuation did not start", error);
      setOverrides((old) => withoutRefused(old, error));
    },
  });
  const override = (vm: string, code: string, on: boolean) =>
    setOverrides((old) => {
      const others = (old[vm] ?? []).filter((each) => each !== code);
      return { ...old, [vm]: on ? [...others, code] : others };
    });
  const movable = plan.data?.movable ?? 0;
  return (
    <>
      <PageHead
        title={`Evacuate ${name}`}
        trail={[
          { to: "/hosts", text: "Hosts" },
          { to: `/hosts/${encodeURIComponent(name)}`, text: name },
        ]}
        actions={
          <Button
            isDisabled={movable === 0 || plan.isFetching || plan.isError || goals !== settled}
            isLoading={start.isPending}
            onClick={() => start.mutate()}
          >
            {plan.data ? `Move ${counted(movable, "VM")}` : "Move VMs"}
          </Button>
        }
      >
        Move all VMs of the host to other hosts, live, a few at a time. Review the plan first.
      </PageHead>
      <PageSection>
        <Stack hasGutter>
          <StackItem>
            <Form>
              <Flex>
                <FlexItem style={{ minInlineSize: "min(38ch, 100%)" }}>
                  <FormGroup label="Order of the VMs" fieldId="evacuation-order">
                    <FormSelect
                      id="evacuation-order"
                      value={order}
                      onChange={(_event, value) => setOrder(value as Schemas["Order"])}
                    >
                      {Object.entries(ORDERS).map(([value, text]) => (
                        <FormSelectOption key={value} value={value} label={text} />
                      ))}
                    </FormSelect>
                  </FormGroup>
                </FlexItem>
                <FlexItem style={{ minInlineSize: "min(28ch, 100%)" }}>
                  <FormGroup label="Profile" fieldId="evacuation-profile">
                    <ProfileChoice
                      id="evacuation-profile"
                      value={profile}
                      none="Each VM's assigned profile"
                      choose={setProfile}
                    />
                  </FormGroup>
                </FlexItem>
                <FlexItem style={{ minInlineSize: "min(28ch, 100%)" }}>
                  <FormGroup label="VMs on local disks" fieldId="evacuation-disks">
                    <FormSelect
                      id="evacuation-disks"
                      value={localDisks}
                      onChange={(_event, value) => setLocalDisks(value as Schemas["LocalDisks"])}
                    >
                      {Object.entries(LOCAL_DISKS).map(([value, text]) => (
                        <FormSelectOption key={value} value={value} label={text} />
                      ))}
                    </FormSelect>
                  </FormGroup>
                </FlexItem>
                <FlexItem>
                  <FormGroup label="Stop after failed migrations" fieldId="evacuation-stop">
                    <TextInput
                      id="evacuation-stop"
                      type="number"
                      min={1}
                      placeholder="never"
                      value={stop}
                      onChange={(_event, value) => setStop(value)}
                    />
                  </FormGroup>
                </FlexItem>
              </Flex>
              <Destinations name={name} chosen={chosen} choose={setChosen} />
              <IntentSection
                id="evacuation-intent"
                typed={intent}
                change={setIntent}
                problems={plan.error instanceof ApiError ? plan.error.problems : []}
              />
              <Checkbox
                id="evacuation-maintenance"
                label={`Begin maintenance of ${name}`}
                description="It receives no VMs until you end its maintenance."
                isChecked={maintain || inMaintenance}
                isDisabled={inMaintenance}
                onChange={(_event, on) => setMaintain(on)}
              />
            </Form>
          </StackItem>
          <StackItem>
            <Async query={plan} lines={8}>
              {(data) => (
                <Stack hasGutter>
                  {data.left > 0 && (
                    <StackItem>
                      <Alert
                        isInline
                        variant="warning"
                        title={`${count(data.left)} of its VMs would remain; see the reasons below`}
                      />
                    </StackItem>
                  )}
                  {Object.entries(data.refused).map(([host, why]) => (
                    <StackItem key={host}>
                      <Alert isInline variant="info" title={`${host} cannot receive VMs: ${why}`} />
                    </StackItem>
                  ))}
                  <StackItem>
                    <EvacuationVms vms={data.vms} planned override={override} />
                  </StackItem>
                  {data.rooms.length > 0 && (
                    <StackItem>
                      <Rooms rooms={data.rooms} />
                    </StackItem>
                  )}
                </Stack>
              )}
            </Async>
          </StackItem>
        </Stack>
      </PageSection>
    </>
  );
}

/** Of an evacuation that was asked for, no whole answer came. */
class Unanswered extends Error {
  constructor(cause: ApiError) {
    super(cause.message, { cause });
  }
}

/** The overrides without those of VMs that have left the host: the plan has no box to untick. */
function withoutRefused(overrides: Overrides, error: Error | null): Overrides {
  const problems = error instanceof ApiError ? error.problems : [];
  const refused = new Set(problems.map((problem) => problem.field));
  const kept = Object.entries(overrides).filter(([vm]) => !refused.has(`vm_overrides.${vm}`));
  return kept.length === Object.keys(overrides).length ? overrides : Object.fromEntries(kept);
}

function Destinations({
  name,
  chosen,
  choose,
}: {
  name: string;
  chosen: readonly string[];
  choose: (hosts: readonly string[]) => void;
}) {
  const list = useInfiniteQuery(hosts);
  const others = (list.data?.pages ?? [])
    .flatMap((page) => page.items)
    .filter((each) => each.name !== name);
  return (
    <FormGroup
      role="group"
      fieldId="evacuation-destinations"
      label={chosen.length === 0 ? "Destinations (none chosen: any eligible host)" : "Destinations"}
    >
      <Flex>
        {others.map((each) => (
          <FlexItem key={each.name}>
            <Checkbox
              id={`to-${each.name}`}
              label={each.name}
              isChecked={chosen.includes(each.name)}
              onChange={(_event, on) =>
                choose(on ? [...chosen, each.name] : chosen.filter((one) => one !== each.name))
              }
            />
          </FlexItem>
        ))}
      </Flex>
      <More list={list} />
    </FormGroup>
  );
}

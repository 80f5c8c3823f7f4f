import {
  ActionList,
  ActionListGroup,
  ActionListItem,
  Button,
  Flex,
  FlexItem,
  Grid,
  GridItem,
  PageSection,
} from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import { ApiError, type Schemas } from "../api/client";
import { explanation, vm, vmLastSeen } from "../api/queries";
import { useDialog } from "../components/dialogs/asked";
import { Labels } from "../components/labels/Labels";
import { AsOf, TuningLabel } from "../components/labels/TuningLabel";
import { Alert } from "../components/layout/Alert";
import { Async } from "../components/layout/Async";
import { ButtonLink } from "../components/layout/ButtonLink";
import { type Fact, Facts } from "../components/layout/Facts";
import { PageHead } from "../components/layout/PageHead";
import { Arriving, useArrivals } from "../components/migration/Arriving";
import { VmStanding } from "../components/migration/VmStanding";
import { bytes } from "../components/text/format";
import { ApplyDialog } from "./vm/ApplyDialog";
import { History } from "./vm/History";
import { LabelsDialog } from "./vm/LabelsDialog";
import { LastSeen } from "./vm/LastSeen";
import { MigrateDialog } from "./vm/MigrateDialog";
import { Settings } from "./vm/Settings";
import { Tuning } from "./vm/Tuning";
import { Why } from "./vm/Why";

const SILENT = new Set(["host_unreachable"]);
const DIALOGS = ["apply", "again", "migrate", "labels"] as const;

export default function Vm() {
  const { uuid = "" } = useParams();
  const found = useQuery(vm(uuid));
  const arrivals = useArrivals();
  const why = useQuery(explanation(uuid));
  const [dialog, setDialog] = useDialog(DIALOGS);
  const silent = found.data === undefined && isSilent(found.error);
  const looked = useQuery({ ...vmLastSeen(uuid), enabled: silent });
  const seen = looked.data;
  const name = found.data?.name ?? seen?.name ?? "VM";
  const running = found.data?.migration;
  const tuning = found.data?.tuning;
  const applied = tuning?.application != null;
  return (
    <>
      <PageHead
        title={name}
        trail={[{ to: "/vms", text: "VMs" }]}
        actions={
          <ActionList>
            <ActionListGroup>
              <ActionListItem>
                <Button
                  variant="secondary"
                  isDisabled={silent || !found.data}
                  onClick={() => setDialog("apply")}
                >
                  Plan and apply
                </Button>
              </ActionListItem>
              <ActionListItem>
                {running ? (
                  <ButtonLink to={`/migrations/${running}`}>Running migration</ButtonLink>
                ) : (
                  <Button isDisabled={!found.data} onClick={() => setDialog("migrate")}>
                    Migrate
                  </Button>
                )}
              </ActionListItem>
            </ActionListGroup>
          </ActionList>
        }
      />
      <PageSection>
        {silent && seen !== null ? (
          <Async query={looked}>
            {(row) =>
              row && (
                <Grid hasGutter>
                  <LastSeen
                    vm={row}
                    remedy={remedyOf(found.error)}
                    again={() => void found.refetch()}
                  />
                </Grid>
              )
            }
          </Async>
        ) : (
          <Async query={found}>
            {(data) => (
              <Grid hasGutter>
                {arrivals
                  .filter((each) => each.vm === uuid)
                  .map((each) => (
                    <GridItem key={each.vm}>
                      <Arriving arrival={each} />
                    </GridItem>
                  ))}
                {data.blocked_reasons.map((reason) => (
                  <GridItem key={reason}>
                    <Alert
                      isInline
                      variant="warning"
                      title="QEMU reports that the VM cannot be migrated now"
                    >
                      {reason}
                    </Alert>
                  </GridItem>
                ))}
                <Tuning
                  vm={data}
                  winner={why.data?.winner?.profile ?? null}
                  reason={why.data?.reason}
                  again={() => setDialog("again")}
                  apply={() => setDialog("apply")}
                />
                <GridItem md={5}>
                  <Facts title="VM" facts={facts(data, () => setDialog("labels"))} />
                </GridItem>
                <GridItem md={7}>
                  <Why vm={uuid} />
                </GridItem>
                <GridItem>
                  <Settings
                    vm={uuid}
                    assigned={applied || why.data?.winner != null}
                    readings={data.readings}
                    bootReadings={data.boot_readings}
                  />
                </GridItem>
                <History vm={uuid} />
              </Grid>
            )}
          </Async>
        )}
      </PageSection>
      {dialog === "apply" && <ApplyDialog vm={uuid} name={name} close={() => setDialog(null)} />}
      {dialog === "again" && tuning && (
        <ApplyDialog vm={uuid} name={name} again={tuning} close={() => setDialog(null)} />
      )}
      {dialog === "labels" && found.data && (
        <LabelsDialog
          vm={uuid}
          name={name}
          labels={found.data.labels}
          close={() => setDialog(null)}
        />
      )}
      {dialog === "migrate" && found.data && (
        <MigrateDialog vm={uuid} name={name} host={found.data.host} close={() => setDialog(null)} />
      )}
    </>
  );
}

/** Whether the VM's host did not answer. */
const isSilent = (error: Error | null) =>
  error instanceof ApiError && error.problems.some(({ code }) => SILENT.has(code));

const remedyOf = (error: Error | null) =>
  (error instanceof ApiError && error.problems.find(({ code }) => SILENT.has(code))?.remedy) || "";

function facts(vm: Schemas["VmDetail"], editLabels: () => void): Fact[] {
  return [
    ["State", <VmStanding key="state" vm={vm} />],
    ["Tuning", <TuningLabel key="tuning" state={vm.tuning_state} tuning={vm.tuning} />],
    ["As of", <AsOf key="as-of" tuning={vm.tuning} />],
    [
      "Host",
      <Link key="host" to={`/hosts/${vm.host}`}>
        {vm.host}
      </Link>,
    ],
    ["QEMU", `${vm.qemu_version} by ${vm.kvm ? "KVM" : "emulation"}`],
    ["Machine", vm.machine],
    ["Memory", bytes(vm.memory_bytes)],
    ["vCPUs", vm.vcpus],
    [
      "Labels",
      <Flex key="labels" alignItems={{ default: "alignItemsCenter" }}>
        <FlexItem>
          <Labels labels={vm.labels} />
        </FlexItem>
        <FlexItem>
          <Button variant="link" size="sm" isInline aria-label="Edit labels" onClick={editLabels}>
            Edit
          </Button>
        </FlexItem>
      </Flex>,
    ],
  ];
}

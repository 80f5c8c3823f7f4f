import {
  ActionList,
  ActionListItem,
  Button,
  Card,
  CardBody,
  CardTitle,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Grid,
  GridItem,
  PageSection,
} from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useParams } from "react-router";
import type { Schemas } from "../api/client";
import { explanation, vm } from "../api/queries";
import { Async } from "../components/Async";
import { bytes } from "../components/format";
import { Labels } from "../components/Labels";
import { PageHead } from "../components/PageHead";
import { VmLabel } from "../components/StateLabel";
import { ApplyDialog } from "./vm/ApplyDialog";
import { History } from "./vm/History";
import { MigrateDialog } from "./vm/MigrateDialog";
import { Settings } from "./vm/Settings";

type Dialog = "apply" | "migrate" | null;

export default function Vm() {
  const { uuid = "" } = useParams();
  const found = useQuery(vm(uuid));
  const why = useQuery(explanation(uuid));
  const [dialog, setDialog] = useState<Dialog>(null);
  const name = found.data?.name ?? "VM";
  return (
    <>
      <PageHead
        title={name}
        trail={[{ to: "/vms", text: "VMs" }]}
        actions={
          <ActionList>
            <ActionListItem>
              <Button variant="secondary" onClick={() => setDialog("apply")}>
                Plan and apply
              </Button>
            </ActionListItem>
            <ActionListItem>
              <Button onClick={() => setDialog("migrate")}>Migrate</Button>
            </ActionListItem>
          </ActionList>
        }
      />
      <PageSection>
        <Async query={found}>
          {(data) => (
            <Grid hasGutter>
              <GridItem md={4}>
                <Facts vm={data} />
              </GridItem>
              <GridItem md={8}>
                <Card>
                  <CardTitle component="h2">Profile</CardTitle>
                  <CardBody>
                    <Async query={why} lines={1}>
                      {(explained) => <p>{explained.reason}</p>}
                    </Async>
                  </CardBody>
                </Card>
              </GridItem>
              <GridItem>
                <Settings vm={uuid} assigned={why.data?.winner != null} readings={data.readings} />
              </GridItem>
              <GridItem>
                <History vm={uuid} />
              </GridItem>
            </Grid>
          )}
        </Async>
      </PageSection>
      {dialog === "apply" && <ApplyDialog vm={uuid} name={name} close={() => setDialog(null)} />}
      {dialog === "migrate" && found.data && (
        <MigrateDialog vm={uuid} name={name} host={found.data.host} close={() => setDialog(null)} />
      )}
    </>
  );
}

function Facts({ vm }: { vm: Schemas["VmDetail"] }) {
  const facts: [string, React.ReactNode][] = [
    ["State", <VmLabel key="state" state={vm.state} />],
    ["Host", vm.host],
    ["QEMU", `${vm.qemu_version} by ${vm.kvm ? "KVM" : "emulation"}`],
    ["Machine", vm.machine],
    ["Memory", bytes(vm.memory_bytes)],
    ["vCPUs", vm.vcpus],
    ["Labels", <Labels key="labels" labels={vm.labels} />],
  ];
  return (
    <Card isFullHeight>
      <CardTitle component="h2">VM</CardTitle>
      <CardBody>
        <DescriptionList isHorizontal isCompact>
          {facts.map(([term, value]) => (
            <DescriptionListGroup key={term}>
              <DescriptionListTerm>{term}</DescriptionListTerm>
              <DescriptionListDescription>{value}</DescriptionListDescription>
            </DescriptionListGroup>
          ))}
        </DescriptionList>
      </CardBody>
    </Card>
  );
}

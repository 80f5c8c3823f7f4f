import { Card, CardBody, CardTitle, PageSection, Stack, StackItem } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import type { Schemas } from "../api/client";
import { host } from "../api/queries";
import { HostStanding, hostMemory } from "../components/labels/HostStanding";
import { Moment } from "../components/labels/Moment";
import { TunableName } from "../components/labels/TunableName";
import { Async } from "../components/layout/Async";
import { type Fact, Facts } from "../components/layout/Facts";
import { Findings } from "../components/layout/Findings";
import { PageHead } from "../components/layout/PageHead";
import { Problems } from "../components/layout/Problems";
import { bytes, count, counted } from "../components/text/format";
import { HostEvacuations } from "./evacuation/HostEvacuations";
import { HostActions } from "./host/HostActions";
import { SafeToReboot } from "./host/SafeToReboot";

export default function Host() {
  const { name = "" } = useParams();
  const found = useQuery(host(name));
  return (
    <>
      <PageHead
        title={name}
        trail={[{ to: "/hosts", text: "Hosts" }]}
        actions={<HostActions name={name} host={found.data} />}
      />
      <PageSection>
        <Async query={found}>
          {(data) => (
            <Stack hasGutter>
              <Problems problems={data.problems} />
              {data.maintenance_since && (
                <StackItem>
                  <SafeToReboot name={name} />
                </StackItem>
              )}
              <StackItem>
                <Facts title="At a glance" facts={glance(data)} spread />
              </StackItem>
              {data.facts && (
                <StackItem>
                  <Card>
                    <CardTitle component="h2">Host diagnostics</CardTitle>
                    <CardBody>
                      {data.findings.length === 0 ? (
                        <p>No problems.</p>
                      ) : (
                        <Findings findings={data.findings} />
                      )}
                    </CardBody>
                  </Card>
                </StackItem>
              )}
              <StackItem>
                <Facts title="Configuration" facts={added(data)} wide />
              </StackItem>
              {data.facts && (
                <>
                  <StackItem>
                    <Facts title="Current state" facts={said(data.facts)} wide />
                  </StackItem>
                  <StackItem>
                    <Facts
                      title="Kernel settings"
                      wide
                      facts={Object.entries(data.facts.sysctls).map(([key, value]) => [
                        key,
                        count(value),
                        <TunableName key={key} name={key} />,
                      ])}
                    />
                  </StackItem>
                </>
              )}
              <StackItem>
                <HostEvacuations name={name} />
              </StackItem>
            </Stack>
          )}
        </Async>
      </PageSection>
    </>
  );
}

const UNKNOWN = "unknown";

/** As of the last contact. */
function glance(data: Schemas["HostDetail"]): Fact[] {
  const vms = `/vms?host=${encodeURIComponent(data.name)}`;
  return [
    ["State", <HostStanding key="state" host={data} why={data.problems.length === 0} />],
    [
      "VMs",
      <Link key="vms" to={vms}>
        {counted(data.vm_count, "VM")}
      </Link>,
    ],
    ["Memory", hostMemory(data)],
    ["Findings", data.finding_count ?? "not known yet"],
    ["Last contact", <Moment key="contact" at={data.answered_at} />],
    ["In maintenance since", <Moment key="maintenance" at={data.maintenance_since} />],
  ];
}

function added(data: Schemas["HostDetail"]): Fact[] {
  return [
    ["URI", data.uri],
    ["Peer URI", data.peer_uri || "derived from its URI"],
    ...(data.owner ? ([["Managed by the service", data.owner]] as const) : []),
    ["Address for migrations", data.migration_address || "chosen by libvirt"],
    ...(data.migrate_uri ? ([["Migrations connect to", data.migrate_uri]] as const) : []),
    ...(data.listen_address ? ([["Listens for migrations on", data.listen_address]] as const) : []),
    ...(data.disks_uri ? ([["Copies of disks connect to", data.disks_uri]] as const) : []),
    ["Added", <Moment key="added" at={data.created_at} />],
    ...(data.drift ? drift(data.drift) : []),
  ];
}

function drift({ ended_at, result, problems }: Schemas["DriftScanView"]): Fact[] {
  if (result === null) return [["Drift scan", "not yet"]];
  const failed = result.failed > 0 ? `, ${count(result.failed)} did not answer` : "";
  const silent = result.checked === 0 && problems[0] ? ` (${problems[0].message})` : "";
  return [
    ["Drift scan", <Moment key="drift" at={ended_at} />],
    ["VMs with drift", `${count(result.drifted)} of ${count(result.checked)}${failed}${silent}`],
  ];
}

function said(facts: Schemas["HostFactsView"]): Fact[] {
  return [
    ["Name", facts.hostname],
    ["Kernel", facts.kernel || UNKNOWN],
    ["libvirt", facts.libvirt_version ?? "none"],
    ["QEMU", facts.qemu_version ?? UNKNOWN],
    ["KVM", yesOrNo(facts.kvm, "usable", "not usable")],
    ["CPUs", facts.cpus ?? UNKNOWN],
    ["Memory", facts.memory_bytes === null ? UNKNOWN : bytes(facts.memory_bytes)],
    ["Can lock memory beyond limits", yesOrNo(facts.can_lock_beyond_limits, "yes", "no")],
  ];
}

function yesOrNo(value: boolean | null, yes: string, no: string): string {
  return value === null ? UNKNOWN : value ? yes : no;
}

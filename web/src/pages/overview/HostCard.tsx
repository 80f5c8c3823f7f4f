import { Card, CardBody, CardTitle, Label, List, ListItem } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { host } from "../../api/queries";
import { Async } from "../../components/Async";
import { FINDING_LOOK, inOrder } from "../../components/Findings";
import { Problems } from "../../components/Problems";

const SHOWN = 3;

/** A host: what it runs, and what is the matter with it. */
export function HostCard({ name }: { name: string }) {
  const found = useQuery(host(name));
  return (
    <Card isFullHeight isCompact>
      <CardTitle component="h3">
        <Link to={`/hosts/${name}`}>{name}</Link>
      </CardTitle>
      <CardBody>
        <Async query={found} lines={2}>
          {({ facts, problems, findings }) => (
            <>
              <Problems problems={problems} />
              {facts && <p>{software(facts)}</p>}
              {facts && findings.length === 0 && <p>No problems.</p>}
              {findings.length > 0 && (
                <List isPlain aria-label={`Findings on ${name}`}>
                  {inOrder(findings)
                    .slice(0, SHOWN)
                    .map((each) => (
                      <ListItem key={`${each.code} ${each.message}`}>
                        <Label isCompact status={FINDING_LOOK[each.severity]}>
                          {each.severity}
                        </Label>{" "}
                        {each.message}
                      </ListItem>
                    ))}
                </List>
              )}
              <p>
                {findings.length > SHOWN && (
                  <>
                    <Link to={`/hosts/${name}`}>{findings.length - SHOWN} more</Link>
                    {" · "}
                  </>
                )}
                <Link to={`/vms?host=${encodeURIComponent(name)}`}>VMs of {name}</Link>
              </p>
            </>
          )}
        </Async>
      </CardBody>
    </Card>
  );
}

function software(facts: Schemas["HostFactsView"]): string {
  return [
    facts.libvirt_version ? `libvirt ${facts.libvirt_version}` : "QEMU without libvirt",
    ...(facts.qemu_version ? [`QEMU ${facts.qemu_version}`] : []),
    ...(facts.kvm === false ? ["no KVM"] : []),
  ].join(", ");
}

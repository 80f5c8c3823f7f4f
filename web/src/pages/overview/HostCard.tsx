import { Card, CardBody, CardTitle, List, ListItem } from "@patternfly/react-core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { host, vms } from "../../api/queries";
import { Async } from "../../components/Async";
import { Problems } from "../../components/Problems";
import { VmLabel } from "../../components/StateLabel";

const SHOWN = 8;

/** A host: what runs on it, and what is the matter with it. */
export function HostCard({ name }: { name: string }) {
  const found = useQuery(host(name));
  const list = useInfiniteQuery(vms({ host: name }));
  return (
    <Card isFullHeight>
      <CardTitle component="h2">
        <Link to={`/hosts/${name}`}>{name}</Link>
      </CardTitle>
      <CardBody>
        <Async query={found} lines={2}>
          {({ facts, problems }) => (
            <>
              <Problems problems={problems} />
              {facts && (
                <p>
                  {facts.libvirt_version
                    ? `libvirt ${facts.libvirt_version}`
                    : "QEMU without libvirt"}
                  {facts.qemu_version && `, QEMU ${facts.qemu_version}`}
                  {facts.kvm === false && ", no KVM"}
                </p>
              )}
            </>
          )}
        </Async>
        <Async query={list} lines={2}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            if (items.length === 0) return <p>No VMs.</p>;
            return (
              <>
                <List isPlain>
                  {items.slice(0, SHOWN).map((each) => (
                    <ListItem key={each.uuid}>
                      <Link to={`/vms/${each.uuid}`}>{each.name}</Link>{" "}
                      <VmLabel state={each.state} />
                    </ListItem>
                  ))}
                </List>
                {(items.length > SHOWN || list.hasNextPage) && (
                  <Link to={`/vms?host=${name}`}>All VMs of {name}</Link>
                )}
              </>
            );
          }}
        </Async>
      </CardBody>
    </Card>
  );
}

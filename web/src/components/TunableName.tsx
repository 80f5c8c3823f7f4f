import { Popover } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { tunables } from "../api/queries";

/** A tunable's name; asked for, it tells what it does and what QEMU and libvirt call it. */
export function TunableName({ name }: { name: string }) {
  const { data } = useQuery(tunables);
  const row = data?.find((each) => each.name === name);
  if (row === undefined) return <>{name}</>;
  return (
    <Popover
      headerContent={row.title}
      bodyContent={
        <>
          <p>{row.why}</p>
          <p>Accepts: {row.allowed}</p>
          {row.qmp && (
            <p>
              QEMU: {row.qmp.kind} <code>{row.qmp.name}</code>
            </p>
          )}
          {row.libvirt && (
            <p>
              libvirt: {row.libvirt.kind} <code>{row.libvirt.name}</code>
              {row.libvirt.virsh && (
                <>
                  , virsh <code>{row.libvirt.virsh}</code>
                </>
              )}
            </p>
          )}
          {row.overwriter && <p>Otherwise overwritten by {row.overwriter}</p>}
        </>
      }
    >
      <button type="button" className="pf-v6-c-button pf-m-link pf-m-inline">
        {name}
      </button>
    </Popover>
  );
}

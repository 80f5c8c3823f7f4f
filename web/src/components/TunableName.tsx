import { Popover } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { tunables } from "../api/queries";

// On a narrow screen a long name is broken rather than cut off; elsewhere it makes its own room.
const WRAPPED = { overflowWrap: "break-word", textAlign: "start", whiteSpace: "normal" } as const;

/** A tunable's name; on hover and focus it tells what it does, and its names elsewhere. */
export function TunableName({ name }: { name: string }) {
  const { data } = useQuery(tunables);
  const row = data?.find((each) => each.name === name);
  if (row === undefined) return <>{name}</>;
  return (
    <Popover
      triggerAction="hover"
      showClose={false}
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
      <button type="button" className="pf-v6-c-button pf-m-link pf-m-inline" style={WRAPPED}>
        {name}
      </button>
    </Popover>
  );
}

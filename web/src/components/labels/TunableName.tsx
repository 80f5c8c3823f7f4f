import { Popover } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { Fragment } from "react";
import { tunables } from "../../api/queries";

/** A tunable's name, which may break at its underscores; on hover and focus it tells what it does, and its names elsewhere. */
export function TunableName({ name }: { name: string }) {
  const { data } = useQuery(tunables);
  const row = data?.find((each) => each.name === name);
  const broken = name.split("_").map((word, place) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the words of a name never move
    <Fragment key={place}>
      {place > 0 && (
        <>
          _<wbr />
        </>
      )}
      {word}
    </Fragment>
  ));
  if (row === undefined) return <>{broken}</>;
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
      <button type="button" className="pf-v6-c-button pf-m-link pf-m-inline">
        <span style={{ textAlign: "start" }}>{broken}</span>
      </button>
    </Popover>
  );
}

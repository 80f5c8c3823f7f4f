import type { Schemas } from "../../api/client";
import { bytes } from "../text/format";
import { Moment } from "./Moment";
import { HostLabel, Labelled } from "./StateLabel";

type Host = Schemas["HostView"];

/** Whether it answers, since when not, and *why* where nothing else tells; and whether it is in
 * maintenance. */
export function HostStanding({ host, why = true }: { host: Host; why?: boolean }) {
  return (
    <>
      <HostLabel state={host.state} />
      {host.maintenance_since && (
        <>
          {" "}
          <Labelled look="warning">
            {host.vm_count === 0 ? "maintenance, no VMs seen" : "maintenance"}
          </Labelled>
        </>
      )}
      {host.unreachable && (
        <div className="vt-reason">
          since <Moment at={host.unreachable.since} />
          {why && `: ${host.unreachable.reason}`}
        </div>
      )}
    </>
  );
}

/** A host's memory as of the last contact; a dash where it is not known. */
export function hostMemory({ memory_bytes: all, memory_available_bytes: free }: Host): string {
  if (all === null) return "–";
  return free === null ? bytes(all) : `${bytes(free)} free of ${bytes(all)}`;
}

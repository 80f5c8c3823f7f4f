import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { Labelled, VmLabel } from "../labels/StateLabel";

/** The state of a VM, with its migration. One that is paused in post-copy stops where it needs
 * memory of the other host: what the host calls it says nothing then.
 *
 * @param vm its `migrating` is what its host says, where that was asked. */
export function VmStanding({
  vm,
}: {
  vm: Pick<Schemas["VmDetail"], "state" | "migration" | "migration_state"> & {
    migrating?: boolean;
  };
}) {
  const paused = vm.migration_state === "postcopy-paused";
  return (
    <>
      {paused ? (
        <Labelled look="danger">post-copy is paused</Labelled>
      ) : (
        <VmLabel state={vm.state} />
      )}{" "}
      {vm.migration ? (
        <Link to={`/migrations/${vm.migration}`}>{paused ? "its migration" : "migrating"}</Link>
      ) : (
        vm.migrating && "migrating"
      )}
    </>
  );
}

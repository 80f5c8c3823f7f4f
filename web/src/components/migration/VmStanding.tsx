import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Schemas } from "../../api/client";
import { migration } from "../../api/queries";
import { Labelled, VmLabel } from "../labels/StateLabel";

/** The state of a VM, with its migration. One that is paused in post-copy stops where it needs
 * memory of the other host: what the host calls it says nothing then. */
export function VmStanding({
  vm,
}: {
  vm: Pick<Schemas["VmDetail"], "state" | "migration" | "migrating">;
}) {
  const id = vm.migration ?? "";
  const paused =
    useQuery({ ...migration(id), enabled: id !== "" }).data?.state === "postcopy-paused";
  return (
    <>
      {paused ? (
        <Labelled look="danger">post-copy is paused</Labelled>
      ) : (
        <VmLabel state={vm.state} />
      )}{" "}
      {id ? (
        <Link to={`/migrations/${id}`}>{paused ? "its migration" : "migrating"}</Link>
      ) : (
        vm.migrating && "migrating"
      )}
    </>
  );
}

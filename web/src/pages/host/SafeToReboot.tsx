import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { host, vms } from "../../api/queries";
import { Alert } from "../../components/layout/Alert";
import { rowsOf } from "../../components/tables/ListTable";

/** Of a host in maintenance: whether VMs still run on it. Nothing where it is not in maintenance. */
export function SafeToReboot({ name }: { name: string }) {
  const found = useQuery(host(name));
  const inMaintenance = found.data?.maintenance_since != null;
  const lists = [
    useInfiniteQuery({ ...vms({ host: name, state: "running" }), enabled: inMaintenance }),
    useInfiniteQuery({ ...vms({ host: name, state: "paused" }), enabled: inMaintenance }),
    useInfiniteQuery({ ...vms({ host: name, state: "incoming" }), enabled: inMaintenance }),
  ];
  if (!inMaintenance || lists.some((list) => !list.data)) return null;
  const silent = lists.some((list) => list.data?.pages.some((page) => page.problems.length > 0));
  const left = lists.reduce((sum, list) => sum + (list.data ? rowsOf(list.data).length : 0), 0);
  if (silent || found.data?.state !== "up") {
    return (
      <Alert
        isInline
        variant="warning"
        title={`${name} is in maintenance and does not answer: whether VMs run on it is unknown`}
      />
    );
  }
  if (left === 0) {
    return (
      <Alert
        isInline
        variant="success"
        title={`${name} is in maintenance and runs no VMs: safe to reboot`}
      />
    );
  }
  return (
    <Alert
      isInline
      variant="info"
      title={`${name} is in maintenance: it receives no VMs. It still runs VMs; evacuate it to move them.`}
    />
  );
}

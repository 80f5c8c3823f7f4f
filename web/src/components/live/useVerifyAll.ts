import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { verifyVm } from "../../api/actions";
import { ApiError } from "../../api/client";

const AT_ONCE = 4; // hosts are asked, not flooded

/**
 * Look again at how VMs stand, a few at a time.
 *
 * @returns what does it, and how many are still to be looked at: null when nothing is going on.
 */
export function useVerifyAll(): [(vms: readonly string[]) => Promise<number>, number | null] {
  const queries = useQueryClient();
  const [left, setLeft] = useState<number | null>(null);
  /** Resolves to how many could not be looked at. */
  const verifyAll = async (vms: readonly string[]) => {
    const waiting = [...vms];
    let failed = 0;
    setLeft(waiting.length);
    const work = async () => {
      for (let vm = waiting.shift(); vm !== undefined; vm = waiting.shift()) {
        try {
          await verifyVm(vm);
        } catch (error) {
          // 404: nothing is wanted of it, or it has just gone.
          if (!(error instanceof ApiError && error.status === 404)) failed += 1;
        }
        setLeft((old) => (old === null ? null : old - 1));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    setLeft(null);
    await queries.invalidateQueries({ queryKey: ["vm", "list"] });
    return failed;
  };
  return [verifyAll, left];
}

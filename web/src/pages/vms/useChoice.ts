import { useEffect, useState } from "react";
import type { VmRow } from "../../api/tuning";

/**
 * Which VMs of a list are chosen: some of them, or everything that its filter lets through, shown
 * or not. Another *filter* chooses none.
 */
export function useChoice(filter: string) {
  const [rows, setRows] = useState<ReadonlyMap<string, VmRow>>(new Map());
  const [everything, setEverything] = useState(false);
  const clear = () => {
    setRows(new Map());
    setEverything(false);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: that it changed is what counts
  useEffect(clear, [filter]);
  const choose = (these: readonly VmRow[], on: boolean) => {
    setEverything(false);
    setRows((before) => {
      const next = new Map(before);
      for (const row of these) {
        if (on) next.set(row.uuid, row);
        else next.delete(row.uuid);
      }
      return next;
    });
  };
  return {
    rows: [...rows.values()],
    everything,
    has: (row: VmRow) => everything || rows.has(row.uuid),
    choose,
    takeAll: () => setEverything(true),
    clear,
  };
}

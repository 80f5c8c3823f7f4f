import type { Schemas } from "../../api/client";

/** What becomes of VMs on local disks, in words. */
export const LOCAL_DISKS: Record<Schemas["LocalDisks"], string> = {
  profile: "As their profiles say",
  copy: "Copy the disks along",
  leave: "Leave these VMs",
};

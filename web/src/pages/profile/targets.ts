/** What an assignment can be for, in words. */
import type { Schemas } from "../../api/client";

export const TARGETS: Record<Schemas["Target"], { label: string; placeholder: string }> = {
  selector: { label: "VMs with these labels", placeholder: "tier=db,zone=a" },
  host: { label: "All VMs of a host", placeholder: "the host's name" },
  vm: { label: "One VM", placeholder: "the VM's UUID" },
  default: { label: "All VMs without another assignment", placeholder: "" },
};

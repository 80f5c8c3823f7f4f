/** Whether the local disks of a VM are copied along, and what that means. */
import { Checkbox, FormGroup, List, ListItem, Stack, StackItem } from "@patternfly/react-core";
import type { Schemas } from "../../api/client";
import { plannedDisk } from "../../components/migration/copying";

type Plan = Pick<Schemas["PlanView"], "findings" | "disks" | "connection">;

/** What the preflight says of a disk that the destination has not, or may not have. */
const LOCAL = new Set([
  "disk_missing",
  "disk_differs",
  "disk_may_differ",
  "disks_not_seen",
  "disk_cache_unsafe",
]);

/** How local disks are copied. */
export interface Copying {
  disks: boolean;
  synchronous: boolean;
  /** The source's images are removed after it. */
  removes: boolean;
}
export const STAY: Copying = { disks: false, synchronous: false, removes: false };

/** The values that it comes to. */
export function copyValues({
  disks,
  synchronous,
  removes,
}: Copying): Record<string, boolean | string> {
  if (!disks) return {};
  return {
    copy_storage: true,
    ...(synchronous ? { copy_synchronous_writes: true } : {}),
    ...(removes ? { copy_source_images: "remove" } : {}),
  };
}

/** Whether to offer it: the plan has found local disks, or copies some. */
export function isOffered(plan: Plan | undefined, copying: Copying): boolean {
  if (copying.disks || plan?.connection === "qmp") return true; // the QEMU that waits may have one of its own
  return plan?.findings.some((each) => LOCAL.has(each.code)) ?? false;
}

export function CopyDisks({
  plan,
  copying,
  choose,
}: {
  plan: Plan | undefined;
  copying: Copying;
  choose: (copying: Copying) => void;
}) {
  const disks = plan?.disks ?? [];
  return (
    <FormGroup role="group" label="Local disks" fieldId="copy-disks">
      <Checkbox
        id="copy-disks"
        label="Copy local disks to the destination"
        description={`Before the memory, while the guest runs. ${
          plan?.connection === "qmp"
            ? "The waiting destination QEMU must already have an image for each disk."
            : "Images that the destination lacks are made there."
        }`}
        isChecked={copying.disks}
        onChange={(_event, on) => choose({ ...copying, disks: on })}
        body={
          copying.disks && (
            <Stack hasGutter>
              {disks.length > 0 && (
                <StackItem>
                  <List aria-label="Disks that are copied">
                    {disks.map((disk) => (
                      <ListItem key={disk.target}>{plannedDisk(disk)}</ListItem>
                    ))}
                  </List>
                </StackItem>
              )}
              <StackItem>
                <Checkbox
                  id="copy-synchronously"
                  label="The guest's writes wait for the destination"
                  description="The copy of a busy disk always catches up; the guest writes more slowly meanwhile."
                  isChecked={copying.synchronous}
                  onChange={(_event, on) => choose({ ...copying, synchronous: on })}
                />
              </StackItem>
              <StackItem>
                <Checkbox
                  id="copy-and-remove"
                  label="Remove the source's images afterwards"
                  description="Once the VM is seen to run at the destination, and never where that is not certain."
                  isChecked={copying.removes}
                  onChange={(_event, on) => choose({ ...copying, removes: on })}
                />
              </StackItem>
            </Stack>
          )
        }
      />
    </FormGroup>
  );
}

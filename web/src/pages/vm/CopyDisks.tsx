/** Whether the local disks of a VM are copied along, and what that means. */
import {
  Checkbox,
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
  Stack,
  StackItem,
  TextInput,
} from "@patternfly/react-core";
import { useState } from "react";
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
  /** The targets that were chosen; null for those that are copied unless it is said. */
  only: readonly string[] | null;
  /** Only the image on top of each chain. */
  incremental: boolean;
  /** Most for each, as it was typed; empty for the migration's. */
  bandwidth: string;
  synchronous: boolean;
  /** The source's images are removed after it. */
  removes: boolean;
}
export const STAY: Copying = {
  disks: false,
  only: null,
  incremental: false,
  bandwidth: "",
  synchronous: false,
  removes: false,
};

/** The values that it comes to. */
export function copyValues(copying: Copying): Record<string, boolean | string> {
  if (!copying.disks) return {};
  return {
    [copying.incremental ? "copy_storage_incremental" : "copy_storage"]: true,
    ...(copying.only ? { copy_disks: copying.only.join(",") } : {}),
    ...(copying.bandwidth ? { copy_bandwidth_bytes_per_s: copying.bandwidth } : {}),
    ...(copying.synchronous ? { copy_synchronous_writes: true } : {}),
    ...(copying.removes ? { copy_source_images: "remove" } : {}),
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
        body={copying.disks && <How plan={plan} copying={copying} choose={choose} />}
      />
    </FormGroup>
  );
}

function How({ plan, copying, choose }: Parameters<typeof CopyDisks>[0]) {
  const [typed, type] = useState(copying.bandwidth);
  const limit = () => choose({ ...copying, bandwidth: typed.trim() });
  return (
    <Stack hasGutter>
      <StackItem>
        <Which disks={plan?.disks} copying={copying} choose={choose} />
      </StackItem>
      <StackItem>
        <FormGroup label="Bandwidth of each copy" fieldId="copy-bandwidth">
          <TextInput
            id="copy-bandwidth"
            aria-describedby="copy-bandwidth-help"
            value={typed}
            onChange={(_event, text) => type(text)}
            onBlur={limit}
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              event.preventDefault(); // the plan for it is to be seen first
              limit();
            }}
          />
          <FormHelperText>
            <HelperText id="copy-bandwidth-help">
              <HelperTextItem>
                Such as 60 MiB/s; 0 for no limit. Empty: at most what the memory is sent at.
              </HelperTextItem>
            </HelperText>
          </FormHelperText>
        </FormGroup>
      </StackItem>
      {OPTIONS.map(({ id, name, label, description }) => (
        <StackItem key={id}>
          <Checkbox
            id={id}
            label={label}
            description={description}
            isChecked={copying[name]}
            onChange={(_event, on) => choose({ ...copying, [name]: on })}
          />
        </StackItem>
      ))}
    </Stack>
  );
}

const OPTIONS: readonly {
  id: string;
  name: "incremental" | "synchronous" | "removes";
  label: string;
  description: string;
}[] = [
  {
    id: "copy-incrementally",
    name: "incremental",
    label: "Only the image on top of each chain",
    description:
      "The destination has the same backing files already, and an image on top of them, which is written onto.",
  },
  {
    id: "copy-synchronously",
    name: "synchronous",
    label: "The guest's writes wait for the destination",
    description:
      "The copy of a busy disk always catches up; the guest writes more slowly meanwhile.",
  },
  {
    id: "copy-and-remove",
    name: "removes",
    label: "Remove the source's images afterwards",
    description:
      "Once the VM is seen to run at the destination, and never where that is not certain.",
  },
];

/** Which disks are copied: those that are unless it is said, until one is chosen. */
function Which({
  disks,
  copying,
  choose,
}: {
  disks: Plan["disks"] | undefined;
  copying: Copying;
  choose: (copying: Copying) => void;
}) {
  const [all, setAll] = useState<Plan["disks"]>([]);
  if (copying.only === null && disks && disks.length > 0 && disks !== all) setAll(disks);
  const chosen = copying.only ?? all.map((each) => each.target);
  const toggle = (target: string, on: boolean) => {
    const only = all
      .map((each) => each.target)
      .filter((each) => (each === target ? on : chosen.includes(each)));
    choose({ ...copying, only });
  };
  if (all.length === 0) return null;
  return (
    <FormGroup role="group" label="Disks that are copied" fieldId="copied-disks">
      {all.map((disk) => {
        const on = chosen.includes(disk.target);
        return (
          <Checkbox
            key={disk.target}
            id={`copy-${disk.target}`}
            label={plannedDisk(disk)}
            isChecked={on}
            isDisabled={on && chosen.length === 1}
            onChange={(_event, now) => toggle(disk.target, now)}
          />
        );
      })}
    </FormGroup>
  );
}

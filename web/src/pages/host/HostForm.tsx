import {
  Button,
  ExpandableSection,
  Form,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from "@patternfly/react-core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { ApiError, type Schemas } from "../../api/client";
import { addHost, changeHost } from "../../api/hosts";
import { TextField } from "../../components/forms/TextField";
import { Failure } from "../../components/layout/Async";

type Host = Schemas["HostView"];
type Field = keyof Schemas["HostCreate"];
type Typed = Record<Field, string>;

const NOTHING: Typed = {
  name: "",
  uri: "",
  peer_uri: "",
  migration_address: "",
  migrate_uri: "",
  listen_address: "",
  disks_uri: "",
};
const LABELS: Record<Field, readonly [label: string, help: string]> = {
  name: ["Name", "As in rack7. It cannot be changed later."],
  uri: [
    "URI",
    "As in qemu:///system or qemu+ssh://root@rack7/system; qmp+unix:///run/qemu for a folder of QMP sockets.",
  ],
  peer_uri: ["Peer URI", "By which other hosts reach its libvirt; empty to derive it."],
  migration_address: [
    "Address for migrations",
    "Where its QEMUs listen for a migration; without libvirt only.",
  ],
  migrate_uri: ["Migrations connect to", "As in tcp://10.0.0.7; empty for libvirt's choice."],
  listen_address: ["Listens for migrations on", "As in 10.0.0.7; empty for libvirt's choice."],
  disks_uri: ["Copies of disks connect to", "With libvirt only; empty for libvirt's choice."],
};
const MAIN: readonly Field[] = ["name", "uri"];
const REACHED: readonly Field[] = ["peer_uri", "migration_address"];
const NETWORK = ["migrate_uri", "listen_address", "disks_uri"] as const;

/** Adds a host, after a test connection; or changes the network for migrations of one. */
export function HostForm({
  host,
  close,
  done,
}: {
  host?: Host;
  close: () => void;
  done: (host: Host) => void;
}) {
  const [typed, setTyped] = useState<Typed>(() => (host ? { ...NOTHING, ...pick(host) } : NOTHING));
  const [more, setMore] = useState(false);
  const save = useMutation({
    mutationFn: () => (host ? changeHost(host.name, pick(typed)) : addHost(trimmed(typed))),
    onSuccess: done,
  });
  const faults = save.error instanceof ApiError ? save.error.problems : [];
  const told = faults.length > 0 && faults.every((each) => each.field in LABELS);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  const field = (name: Field) => {
    const found = faults.find((each) => each.field === name);
    return (
      <TextField
        key={name}
        id={`host-${name}`}
        label={LABELS[name][0]}
        help={LABELS[name][1]}
        required={!host && MAIN.includes(name)}
        fault={found ? [found.message, found.remedy].filter(Boolean).join(": ") : ""}
        value={typed[name]}
        change={(value) => setTyped((old) => ({ ...old, [name]: value }))}
      />
    );
  };
  return (
    <Modal isOpen variant="medium" aria-labelledby="host-title" onClose={close}>
      <ModalHeader
        labelId="host-title"
        title={host ? `Migration network of ${host.name}` : "Add a host"}
        description={
          host
            ? "To change its name or URI, remove the host and add it again: its VMs and their history stay."
            : "vmtune connects to it first and says what is wrong if that fails."
        }
      />
      <ModalBody tabIndex={0}>
        <Form id="host-form" onSubmit={submit}>
          {host ? (
            NETWORK.map(field)
          ) : (
            <>
              {MAIN.map(field)}
              <ExpandableSection
                toggleText="Addresses for migrations"
                isExpanded={
                  more || faults.some((each) => each.field in LABELS && !isMain(each.field))
                }
                onToggle={(_event, open) => setMore(open)}
              >
                {[...REACHED, ...NETWORK].map(field)}
              </ExpandableSection>
            </>
          )}
          {save.error && !told && <Failure error={save.error} inline />}
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button
          type="submit"
          form="host-form"
          isLoading={save.isPending}
          isDisabled={save.isPending || (!host && !(typed.name.trim() && typed.uri.trim()))}
        >
          {host ? "Save" : "Add host"}
        </Button>
        <Button variant="link" onClick={close}>
          Cancel
        </Button>
      </ModalFooter>
    </Modal>
  );
}

const isMain = (field: string) => MAIN.some((each) => each === field);

function pick(from: Pick<Typed, (typeof NETWORK)[number]>) {
  const { migrate_uri, listen_address, disks_uri } = from;
  return {
    migrate_uri: migrate_uri.trim(),
    listen_address: listen_address.trim(),
    disks_uri: disks_uri.trim(),
  };
}

function trimmed(typed: Typed): Typed {
  return Object.fromEntries(
    Object.entries(typed).map(([name, value]) => [name, value.trim()]),
  ) as Typed;
}

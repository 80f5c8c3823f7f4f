"""Hosts and VMs of vmtune as an inventory."""

from __future__ import annotations

DOCUMENTATION = r"""
name: inventory
short_description: Hosts and VMs that vmtune knows, grouped by host, state and labels
version_added: 0.1.0
description:
  - "Groups: C(vmtune_hosts), C(vmtune_vms), C(vmtune_on_HOST) with the VMs on a host, C(vmtune_state_STATE), and C(vmtune_label_KEY_VALUE)."
  - The name of the file ends in C(vmtune.yml) or C(vmtune.yaml).
  - A VM is named as in libvirt; where several hosts have one of that name, the beginning of its UUID follows.
author: The developers of vmtune (@vmtune)
extends_documentation_fragment:
  - vmtune.vmtune.service
  - ansible.builtin.constructed
options:
  plugin:
    description: Marks the file as one of this plugin.
    type: str
    required: true
    choices: [vmtune.vmtune.inventory]
  url:
    env:
      - name: VMTUNE_URL
  token:
    env:
      - name: VMTUNE_TOKEN
  vms:
    description: Whether VMs are in the inventory, too.
    type: bool
    default: true
"""

EXAMPLES = r"""
# fleet.vmtune.yml
plugin: vmtune.vmtune.inventory
url: https://tune.example:8470
keyed_groups:
  - key: vmtune_tuning_state
    prefix: tuning
"""

from collections import Counter
from urllib.parse import urlsplit

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Constructable
from ansible_collections.vmtune.vmtune.plugins.module_utils.service import Service, ServiceError

_HOST_FIELDS = ("uri", "state", "qemu_version", "libvirt_version", "kernel", "cpus", "memory_bytes")
_VM_FIELDS = ("uuid", "host", "state", "labels", "tuning_state")


_ELSEWHERE = ("incoming", "migrated away")
"""States of a VM that is on another host: it is not there yet, or no more."""


def _one_each(vms):
    """Each VM once: one that migrates is on its source until it has arrived."""
    chosen = {}
    for vm in sorted(vms, key=lambda vm: vm["state"] in _ELSEWHERE):
        chosen.setdefault(vm["uuid"], vm)
    return [vm for vm in vms if chosen[vm["uuid"]] is vm]


class InventoryModule(BaseInventoryPlugin, Constructable):
    """The inventory."""

    NAME = "vmtune.vmtune.inventory"

    def verify_file(self, path):
        """Whether the file is for this plugin."""
        return super().verify_file(path) and path.endswith(("vmtune.yml", "vmtune.yaml"))

    def parse(self, inventory, loader, path, cache=True):
        """Fill the inventory."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        keys = ("url", "socket", "token", "ca_path", "timeout")
        try:
            service = Service(**{key: self.get_option(key) for key in keys})
            hosts = service.items("/hosts")
            vms = _one_each(service.items("/vms")) if self.get_option("vms") else []
        except ServiceError as error:
            raise AnsibleParserError(str(error)) from error
        for group in ("vmtune_hosts", "vmtune_vms"):
            self.inventory.add_group(group)
        for host in hosts:
            self._add_host(host)
        names = Counter(vm["name"] for vm in vms)
        taken = {host["name"] for host in hosts}
        for vm in vms:
            unique = names[vm["name"]] == 1 and vm["name"] not in taken
            self._add_vm(vm["name"] if unique else f"{vm['name']}-{vm['uuid'][:8]}", vm)

    def _add_host(self, host):
        name = host["name"]
        self.inventory.add_host(name, group="vmtune_hosts")
        parts = urlsplit(host["uri"])
        if parts.hostname:
            self.inventory.set_variable(name, "ansible_host", parts.hostname)
        self._set(name, host, _HOST_FIELDS)
        maintenance = host["maintenance_since"] is not None
        self.inventory.set_variable(name, "vmtune_maintenance", maintenance)
        self._construct(name)

    def _add_vm(self, name, vm):
        self.inventory.add_host(name, group="vmtune_vms")
        self._set(name, vm, _VM_FIELDS)
        groups = [f"vmtune_on_{vm['host']}", f"vmtune_state_{vm['state']}"]
        groups += [f"vmtune_label_{key}_{value}" for key, value in vm["labels"].items()]
        for group in groups:
            safe = self._sanitize_group_name(group)
            self.inventory.add_group(safe)
            self.inventory.add_child(safe, name)
        self._construct(name)

    def _set(self, name, document, fields):
        for field in fields:
            self.inventory.set_variable(name, f"vmtune_{field}", document[field])

    def _construct(self, name):
        strict = self.get_option("strict")
        variables = self.inventory.get_host(name).get_vars()
        self._set_composite_vars(self.get_option("compose"), variables, name, strict=strict)
        variables = self.inventory.get_host(name).get_vars()
        self._add_host_to_composed_groups(self.get_option("groups"), variables, name, strict=strict)
        self._add_host_to_keyed_groups(
            self.get_option("keyed_groups"), variables, name, strict=strict
        )

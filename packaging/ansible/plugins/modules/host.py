#!/usr/bin/python

from __future__ import annotations

DOCUMENTATION = r"""
module: host
short_description: Manage the hosts that vmtune knows
version_added: 0.1.0
description:
  - Adds a host after a test connection, changes the addresses of its migration network, puts it into maintenance, or removes it from vmtune.
  - Removing does not touch the host, its VMs or their history.
author: The developers of vmtune (@vmtune)
extends_documentation_fragment: vmtune.vmtune.service
attributes:
  check_mode:
    description: Changes nothing, and does not connect to a new host.
    support: full
  diff_mode:
    description: Shows the fields that change.
    support: full
options:
  name:
    description: Name of the host.
    type: str
    required: true
  uri:
    description: A libvirt URI, or V(qmp+unix:///FOLDER) for a folder of QMP sockets. Needed to add a host.
    type: str
  peer_uri:
    description: URI by which other hosts reach its libvirt. Derived where it is not given.
    type: str
  migration_address:
    description: Address where its QEMUs listen for a migration; without libvirt only.
    type: str
  migrate_uri:
    description: What a migration to it connects to. An empty text unsets it.
    type: str
  listen_address:
    description: Address on which it takes migrations. An empty text unsets it.
    type: str
  disks_uri:
    description: What copies of local disks connect to; with libvirt only. An empty text unsets it.
    type: str
  maintenance:
    description: Whether it is in maintenance and gets no VMs. Stays as it is where this is not given.
    type: bool
  state:
    description: Whether vmtune knows it.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Add a host
  vmtune.vmtune.host:
    name: rack1
    uri: qemu+ssh://root@rack1.example/system

- name: Take it out of service
  vmtune.vmtune.host:
    name: rack1
    maintenance: true
"""

RETURN = r"""
host:
  description: The host as vmtune knows it; as it would be in check mode.
  returned: when state is present
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.vmtune.vmtune.plugins.module_utils.service import (
    ServiceError,
    arguments,
    difference,
    run,
    segment,
)

_FIXED = ("uri", "peer_uri", "migration_address")
_CHANGEABLE = ("migrate_uri", "listen_address", "disks_uri")


def manage(module, service):
    """Bring the host to the wanted state."""
    name, wanted = module.params["name"], module.params["state"]
    path = f"/hosts/{segment(name)}"
    known = next((h for h in service.items("/hosts") if h["name"] == name), None)
    if wanted == "absent":
        if known is None:
            return dict(changed=False)
        if not module.check_mode:
            service.delete(path)
        return dict(changed=True, diff=difference(_shown(known), None))
    given = {
        field: module.params[field]
        for field in _FIXED + _CHANGEABLE
        if module.params[field] is not None
    }
    before = _shown(known) if known else {}
    after = {**before, **given}
    if module.params["maintenance"] is not None:
        after["maintenance"] = module.params["maintenance"]
    if known is None:
        if not given.get("uri"):
            raise ServiceError(f"uri: there is no host {name!r}, and to add it takes its URI")
        if not module.check_mode:
            known = service.post("/hosts", {"name": name, **given})
    else:
        _refuse_fixed(name, before, given)
        change = {field: given[field] for field in _CHANGEABLE if _differs(field, before, given)}
        if change and not module.check_mode:
            known = service.patch(path, change)
    turned = after.get("maintenance", False) != before.get("maintenance", False)
    if turned and not module.check_mode:
        known = service.put(f"{path}/maintenance", {"on": after["maintenance"]})
    changed = before != after
    result = dict(changed=changed, host={"name": name, **after})
    if known and not module.check_mode:
        result["host"] = known
    if changed:
        result["diff"] = difference(before, after)
    return result


def _shown(known):
    shown = {field: known[field] for field in _FIXED + _CHANGEABLE}
    return {**shown, "maintenance": known["maintenance_since"] is not None}


def _differs(field, before, given):
    return field in given and given[field] != before[field]


def _refuse_fixed(name, before, given):
    for field in _FIXED:
        if _differs(field, before, given):
            raise ServiceError(
                f"{field}: {name!r} has {before[field]!r}, which cannot be changed to "
                f"{given[field]!r}; remedy: remove the host (state: absent) and add it again"
            )


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec=arguments(
            name=dict(type="str", required=True),
            uri=dict(type="str"),
            peer_uri=dict(type="str"),
            migration_address=dict(type="str"),
            migrate_uri=dict(type="str"),
            listen_address=dict(type="str"),
            disks_uri=dict(type="str"),
            maintenance=dict(type="bool"),
            state=dict(type="str", choices=["present", "absent"], default="present"),
        ),
        supports_check_mode=True,
    )
    run(module, manage)


if __name__ == "__main__":
    main()

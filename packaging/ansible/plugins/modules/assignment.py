#!/usr/bin/python

from __future__ import annotations

DOCUMENTATION = r"""
module: assignment
short_description: Assign vmtune's profiles to VMs, labels, hosts, or as the default
version_added: 0.1.0
description:
  - Assigns a profile to one target, or removes the target's assignment.
  - VMs keep the values that were applied. The module M(vmtune.vmtune.apply) applies what is assigned.
author: The developers of vmtune (@vmtune)
extends_documentation_fragment: vmtune.vmtune.service
attributes:
  check_mode:
    description: Changes nothing. Selectors that would tie are found when it is executed.
    support: full
  diff_mode:
    description: Shows the profile before and after.
    support: full
options:
  vm:
    description: Name or UUID of a VM.
    type: str
  labels:
    description: All VMs with these labels.
    type: dict
  host:
    description: All VMs on this host.
    type: str
  default:
    description: All VMs that no other assignment chooses.
    type: bool
  profile:
    description: Name of the profile.
    type: str
  state:
    description: Whether the target has an assignment.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Databases get the profile database
  vmtune.vmtune.assignment:
    labels: {tier: db}
    profile: database

- name: All others get the profile usual
  vmtune.vmtune.assignment:
    default: true
    profile: usual
"""

RETURN = r"""
assignment:
  description: The assignment; without its id in check mode.
  returned: when state is present
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.vmtune.vmtune.plugins.module_utils.service import (
    ServiceError,
    arguments,
    difference,
    run,
)


def manage(module, service):
    """Bring the target's assignment to the wanted state."""
    target, key = _target(module, service)
    profile = module.params["profile"]
    found = service.items("/assignments")
    known = next((a for a in found if (a["target"], a["key"] or "") == (target, key)), None)
    before = _shown(target, key, known["profile"]) if known else None
    if module.params["state"] == "absent":
        if known is None:
            return dict(changed=False)
        if not module.check_mode:
            service.delete(f"/assignments/{known['id']}")
        return dict(changed=True, diff=difference(before, None))
    after = _shown(target, key, profile)
    if before == after:
        return dict(changed=False, assignment=known)
    assignment = after
    if not module.check_mode:
        assignment = _replace(service, known, after)
    elif service.find(f"/profiles/{profile}") is None:
        module.warn(
            f"there is no profile named {profile!r}, unless a task before this one makes it"
        )
    return dict(changed=True, assignment=assignment, diff=difference(before, after))


def _replace(service, known, after):
    """Assign; where that is refused, the target keeps the assignment that it had."""
    if known is None:
        return service.post("/assignments", after)
    service.delete(f"/assignments/{known['id']}")
    try:
        return service.post("/assignments", after)
    except ServiceError:
        service.post("/assignments", {**after, "profile": known["profile"]})
        raise


def _shown(target, key, profile):
    return {"target": target, "key": key, "profile": profile}


def _target(module, service):
    """Target and key, as the service stores them."""
    given = module.params
    if given["vm"]:
        return "vm", service.vm(given["vm"])["uuid"]
    if given["labels"]:
        return "selector", ",".join(f"{k}={v}" for k, v in sorted(given["labels"].items()))
    if given["host"]:
        return "host", given["host"]
    if given["default"]:
        return "default", ""
    raise ServiceError("default: false names no target; remedy: give vm, labels, host or default")


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec=arguments(
            vm=dict(type="str"),
            labels=dict(type="dict"),
            host=dict(type="str"),
            default=dict(type="bool"),
            profile=dict(type="str"),
            state=dict(type="str", choices=["present", "absent"], default="present"),
        ),
        mutually_exclusive=[("vm", "labels", "host", "default")],
        required_one_of=[("vm", "labels", "host", "default")],
        required_if=[("state", "present", ("profile",))],
        supports_check_mode=True,
    )
    run(module, manage)


if __name__ == "__main__":
    main()

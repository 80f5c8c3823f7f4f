#!/usr/bin/python

from __future__ import annotations

DOCUMENTATION = r"""
module: labels
short_description: Set the labels of a VM in vmtune
version_added: 0.1.0
description: Labels choose profiles, the order of evacuations, and the groups of the inventory.
author: The developers of vmtune (@vmtune)
extends_documentation_fragment: vmtune.vmtune.service
attributes:
  check_mode:
    description: Changes nothing.
    support: full
  diff_mode:
    description: Shows all labels before and after.
    support: full
options:
  vm:
    description: Name or UUID of the VM.
    type: str
    required: true
  labels:
    description: Labels to set.
    type: dict
    required: true
  purge:
    description: Whether to remove the VM's other labels.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Label a database
  vmtune.vmtune.labels:
    vm: db1
    labels: {tier: db}
"""

RETURN = r"""
labels:
  description: All labels of the VM.
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.vmtune.vmtune.plugins.module_utils.service import (
    arguments,
    difference,
    run,
)


def manage(module, service):
    """Set the labels."""
    vm = service.vm(module.params["vm"])
    given = {str(key): str(value) for key, value in module.params["labels"].items()}
    before = vm["labels"]
    after = given if module.params["purge"] else {**before, **given}
    if before == after:
        return dict(changed=False, labels=after)
    if not module.check_mode:
        service.items("/vms", search=vm["uuid"])  # labels are for VMs that were listed once
        service.put(f"/vms/{vm['uuid']}/labels", {"labels": after})
    return dict(changed=True, labels=after, diff=difference(before, after))


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec=arguments(
            vm=dict(type="str", required=True),
            labels=dict(type="dict", required=True),
            purge=dict(type="bool", default=False),
        ),
        supports_check_mode=True,
    )
    run(module, manage)


if __name__ == "__main__":
    main()

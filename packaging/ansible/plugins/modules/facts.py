#!/usr/bin/python

from __future__ import annotations

DOCUMENTATION = r"""
module: facts
short_description: Facts about hosts, VMs, profiles and assignments from vmtune
version_added: 0.1.0
description: Sets the fact C(vmtune) to what the service knows. Changes nothing.
author: The developers of vmtune (@vmtune)
extends_documentation_fragment: vmtune.vmtune.service
attributes:
  check_mode:
    description: It only reads.
    support: full
  diff_mode:
    description: Nothing changes.
    support: N/A
options:
  gather:
    description: What to ask for. The service's health is always there.
    type: list
    elements: str
    choices: [hosts, vms, profiles, assignments]
    default: [hosts, vms, profiles, assignments]
"""

EXAMPLES = r"""
- name: What is there
  vmtune.vmtune.facts:

- name: VMs that drift
  ansible.builtin.debug:
    msg: "{{ vmtune.vms | selectattr('tuning_state', 'equalto', 'drifted') | map(attribute='name') }}"
"""

RETURN = r"""
ansible_facts:
  description: The facts.
  returned: always
  type: dict
  contains:
    vmtune:
      description: Keys C(service), C(hosts), C(vms), C(profiles) and C(assignments).
      returned: always
      type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.vmtune.vmtune.plugins.module_utils.service import arguments, run

_PARTS = ["hosts", "vms", "profiles", "assignments"]


def gather(module, service):
    """Ask for it."""
    found = {part: service.items(f"/{part}") for part in module.params["gather"]}
    found["service"] = service.get("/health")
    return dict(changed=False, ansible_facts={"vmtune": found})


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec=arguments(
            gather=dict(type="list", elements="str", choices=_PARTS, default=list(_PARTS)),
        ),
        supports_check_mode=True,
    )
    run(module, gather)


if __name__ == "__main__":
    main()

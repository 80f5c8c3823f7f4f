#!/usr/bin/python

from __future__ import annotations

DOCUMENTATION = r"""
module: profile
short_description: Manage vmtune's tuning profiles
version_added: 0.1.0
description:
  - Creates a profile, writes a new revision if it is not as wanted, or deletes it.
  - Values are compared as the service understands them, so that V(300ms) and V(300) of a limit in milliseconds are the same.
author: The developers of vmtune (@vmtune)
extends_documentation_fragment: vmtune.vmtune.service
attributes:
  check_mode:
    description: Changes nothing. Wrong values fail here, too.
    support: full
  diff_mode:
    description: Shows values, steps and description before and after.
    support: full
options:
  name:
    description: Name of the profile.
    type: str
    required: true
  values:
    description: Values by the tunable's name. A tunable that is not in it is unset and keeps QEMU's value.
    type: dict
    default: {}
  steps:
    description: Convergence steps in order, each with C(when) and C(then).
    type: list
    elements: dict
    default: []
  description:
    description: What it is for.
    type: str
    default: ""
  note:
    description: Note for the history, if a revision is written.
    type: str
    default: ""
  state:
    description: Whether there is such a profile.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: A profile for databases
  vmtune.vmtune.profile:
    name: database
    values:
      multifd: true
      multifd_channels: 4
      downtime_limit_ms: 200ms
    steps:
      - when: {after_s: 120}
        then: {set: {downtime_limit_ms: 500ms}}
"""

RETURN = r"""
profile:
  description: The profile; in check mode its values, steps and description as they would be.
  returned: when state is present
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.vmtune.vmtune.plugins.module_utils.service import (
    arguments,
    difference,
    run,
    segment,
)

_COMPARED = ("values", "steps", "description")


def manage(module, service):
    """Bring the profile to the wanted state."""
    given = module.params
    path = f"/profiles/{segment(given['name'])}"
    known = service.find(path)
    before = {field: known[field] for field in _COMPARED} if known else None
    if given["state"] == "absent":
        if known is None:
            return dict(changed=False)
        if not module.check_mode:
            service.delete(path)
        return dict(changed=True, diff=difference(before, None))
    body = {"values": given["values"], "steps": given["steps"]}
    checked = service.post("/profiles/check", body)
    after = {
        "values": checked["values"],
        "steps": checked["steps"],
        "description": given["description"],
    }
    if before == after:
        return dict(changed=False, profile=known)
    profile = {"name": given["name"], **after}
    if not module.check_mode:
        body = {**body, "description": given["description"], "note": given["note"]}
        if known is None:
            profile = service.post("/profiles", {"name": given["name"], **body})
        else:
            profile = service.put(path, body, known["revision"])
    return dict(changed=True, profile=profile, diff=difference(before, after))


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec=arguments(
            name=dict(type="str", required=True),
            values=dict(type="dict", default={}),
            steps=dict(type="list", elements="dict", default=[]),
            description=dict(type="str", default=""),
            note=dict(type="str", default=""),
            state=dict(type="str", choices=["present", "absent"], default="present"),
        ),
        supports_check_mode=True,
    )
    run(module, manage)


if __name__ == "__main__":
    main()

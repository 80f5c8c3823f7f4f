#!/usr/bin/python

from __future__ import annotations

DOCUMENTATION = r"""
module: evacuate
short_description: Move all VMs of a host to other hosts with vmtune
version_added: 0.1.0
description:
  - Evacuates a host and waits for the end. A host on which no VM runs is left as it is.
  - If an evacuation of the host is under way, the module waits for it instead.
  - The task fails where VMs are left, and names each with its reason.
author: The developers of vmtune (@vmtune)
extends_documentation_fragment: vmtune.vmtune.service
attributes:
  check_mode:
    description: Plans instead, and fails where VMs would be left.
    support: full
  diff_mode:
    description: Shows the VMs on the host before and after.
    support: full
options:
  host:
    description: Name of the host.
    type: str
    required: true
  destinations:
    description: Names of hosts; empty for all that are eligible.
    type: list
    elements: str
    default: []
  order:
    description: Which VMs move first.
    type: str
    choices: [priority, largest-first, smallest-first]
    default: priority
  overrides:
    description: Codes of blockers to override for all VMs.
    type: list
    elements: str
    default: []
  profile:
    description: Name of the profile; without it the one assigned to each VM.
    type: str
  priority:
    description: Priority of its migrations in the queue, -100 to 100.
    type: int
    default: 0
  max_outgoing:
    description: Most migrations at once.
    type: int
  stop_after_failures:
    description: Stop after so many failed migrations.
    type: int
  wait:
    description: Whether to wait for the end.
    type: bool
    default: true
  wait_timeout:
    description: How long to wait, in seconds. The evacuation goes on after it.
    type: int
    default: 14400
"""

EXAMPLES = r"""
- name: No VM may come back meanwhile
  vmtune.vmtune.host:
    name: rack1
    maintenance: true

- name: Empty the host
  vmtune.vmtune.evacuate:
    host: rack1
    order: largest-first
"""

RETURN = r"""
evacuation:
  description: The evacuation; in check mode its plan.
  returned: when there is one
  type: dict
vms:
  description: Its VMs, each with state, destination and reason.
  returned: when there is one
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.vmtune.vmtune.plugins.module_utils.service import (
    ServiceError,
    arguments,
    difference,
    run,
    segment,
)

_OPTIONS = (
    "destinations",
    "order",
    "overrides",
    "profile",
    "priority",
    "max_outgoing",
    "stop_after_failures",
)
_LEFT = ("failed", "aborted", "blocked", "not placed", "not started")


def manage(module, service):
    """Empty the host."""
    path = f"/hosts/{segment(module.params['host'])}/evacuations"
    running = service.items(path, state="running") + service.items(path, state="paused")
    if running:
        return dict(changed=False, **_wait(module, service, path, running[0]))
    on_it = service.items(f"/hosts/{segment(module.params['host'])}/vms")
    names = sorted(vm["name"] for vm in on_it if vm["state"] in ("running", "paused"))
    if not names:
        return dict(changed=False)
    diff = difference({"vms": names}, {"vms": []})
    order = {key: module.params[key] for key in _OPTIONS}
    if module.check_mode:
        plan = service.post(f"{path}/plan", order)
        _refuse_left(plan["vms"], "would be left")
        return dict(changed=True, evacuation=plan, vms=plan["vms"], diff=diff)
    started = service.post(path, order)
    return dict(changed=True, diff=diff, **_wait(module, service, path, started))


def _refuse_left(vms, words):
    left = [vm for vm in vms if vm["state"] in _LEFT]
    if left:
        said = "; ".join(f"{vm['name']} is {vm['state']}: {vm['reason']}" for vm in left)
        raise ServiceError(f"{len(left)} VMs {words}: {said}")


def _wait(module, service, path, evacuation):
    path = f"{path}/{evacuation['id']}"
    if not module.params["wait"]:
        return dict(evacuation=evacuation, vms=service.items(f"{path}/vms"))
    evacuation, ended = service.until_ended(path, module.params["wait_timeout"])
    vms = service.items(f"{path}/vms")
    if not ended:
        raise ServiceError(
            f"the evacuation {evacuation['id']} is {evacuation['state']} after "
            f"{module.params['wait_timeout']} s; it goes on"
        )
    if evacuation["state"] != "completed":
        _refuse_left(vms, "are left")
        raise ServiceError(f"the evacuation is {evacuation['state']}: {evacuation['reason']}")
    return dict(evacuation=evacuation, vms=vms)


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec=arguments(
            host=dict(type="str", required=True),
            destinations=dict(type="list", elements="str", default=[]),
            order=dict(
                type="str",
                choices=["priority", "largest-first", "smallest-first"],
                default="priority",
            ),
            overrides=dict(type="list", elements="str", default=[]),
            profile=dict(type="str"),
            priority=dict(type="int", default=0),
            max_outgoing=dict(type="int"),
            stop_after_failures=dict(type="int"),
            wait=dict(type="bool", default=True),
            wait_timeout=dict(type="int", default=14400),
        ),
        supports_check_mode=True,
    )
    run(module, manage)


if __name__ == "__main__":
    main()

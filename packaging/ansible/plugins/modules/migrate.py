#!/usr/bin/python

from __future__ import annotations

DOCUMENTATION = r"""
module: migrate
short_description: Migrate a VM live with vmtune
version_added: 0.1.0
description:
  - Migrates a VM to another host with its profile, and waits for the end. A VM that is there already stays.
  - If a migration of the VM to that host is under way, the module waits for it instead.
author: The developers of vmtune (@vmtune)
extends_documentation_fragment: vmtune.vmtune.service
attributes:
  check_mode:
    description: Plans instead. A blocker fails here, too.
    support: full
  diff_mode:
    description: Shows the VM's host before and after.
    support: full
options:
  vm:
    description: Name or UUID of the VM.
    type: str
    required: true
  destination:
    description: Name of the host.
    type: str
    required: true
  profile:
    description: Name of the profile; without it the assigned one.
    type: str
  values:
    description: Values for this migration; they take precedence over the profile's.
    type: dict
    default: {}
  overrides:
    description: Codes of blockers to override.
    type: list
    elements: str
    default: []
  priority:
    description: Priority in the queue, -100 to 100; higher runs first.
    type: int
    default: 0
  wait:
    description: Whether to wait for the end.
    type: bool
    default: true
  wait_timeout:
    description: How long to wait, in seconds. The migration goes on after it.
    type: int
    default: 3600
"""

EXAMPLES = r"""
- name: Move a VM
  vmtune.vmtune.migrate:
    vm: web1
    destination: rack2
  register: moved

- name: What it cost
  ansible.builtin.debug:
    msg: "{{ moved.migration.totals.downtime_ms }} ms"
  when: moved is changed
"""

RETURN = r"""
migration:
  description: The record of the migration.
  returned: when there is one
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
    """Migrate the VM, unless it is there."""
    vm = service.vm(module.params["vm"])
    destination = module.params["destination"]
    running = service.get(f"/migrations/{vm['migration']}") if vm["migration"] else None
    if running is not None and not running["ended"]:
        if running["destination"] != destination:
            raise ServiceError(
                f"vm: {vm['name']} is being migrated to {running['destination']}; "
                "remedy: wait for its end, or abort it"
            )
        return dict(changed=False, migration=_wait(module, service, running))
    if vm["host"] == destination:
        return dict(changed=False)
    diff = difference({"host": vm["host"]}, {"host": destination})
    order = {key: module.params[key] for key in ("profile", "values")}
    if module.check_mode:
        plan = service.post(f"/vms/{vm['uuid']}/plan", {"destination": destination, **order})
        _refuse_blocked(plan, module.params["overrides"])
        return dict(changed=True, diff=diff)
    order.update({key: module.params[key] for key in ("overrides", "priority")})
    order.update(vm=vm["uuid"], destination=destination)
    started = service.post("/migrations", order)
    return dict(changed=True, migration=_wait(module, service, started), diff=diff)


def _refuse_blocked(plan, overridden):
    codes = set(plan["blockers"]) - set(overridden)
    found = [f for f in plan["findings"] if f["code"] in codes]
    if found:
        said = "; ".join(f"{f['code']}: {f['message']}; remedy: {f['remedy']}" for f in found)
        raise ServiceError(f"it would be refused: {said}")


def _wait(module, service, record):
    if not module.params["wait"]:
        return record
    path = f"/migrations/{record['id']}"
    record, ended = service.until_ended(path, module.params["wait_timeout"])
    if not ended:
        raise ServiceError(
            f"the migration {record['id']} is {record['state']} after "
            f"{module.params['wait_timeout']} s; it goes on"
        )
    if record["state"] != "completed":
        raise ServiceError(
            f"the migration {record['id']} is {record['state']}: {record['failure']}",
            problems=record["problems"],
        )
    return record


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec=arguments(
            vm=dict(type="str", required=True),
            destination=dict(type="str", required=True),
            profile=dict(type="str"),
            values=dict(type="dict", default={}),
            overrides=dict(type="list", elements="str", default=[]),
            priority=dict(type="int", default=0),
            wait=dict(type="bool", default=True),
            wait_timeout=dict(type="int", default=3600),
        ),
        supports_check_mode=True,
    )
    run(module, manage)


if __name__ == "__main__":
    main()

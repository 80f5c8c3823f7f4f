#!/usr/bin/python

from __future__ import annotations

DOCUMENTATION = r"""
module: apply
short_description: Apply a tuning profile to a VM, or revert it
version_added: 0.1.0
description:
  - Compares what the VM runs with to the profile, and applies it only where it is not applied or the VM has drifted.
  - What waits for the VM's next migration or start counts as applied.
author: The developers of vmtune (@vmtune)
extends_documentation_fragment: vmtune.vmtune.service
attributes:
  check_mode:
    description: Plans instead. A blocker fails here, too.
    support: full
  diff_mode:
    description: Shows the values that change.
    support: full
options:
  vm:
    description: Name or UUID of the VM.
    type: str
    required: true
  profile:
    description: Name of the profile; without it the assigned one.
    type: str
  revision:
    description: Revision of O(profile); without it the current one.
    type: int
  best_effort:
    description: Skip refused values instead of rolling everything back.
    type: bool
    default: false
  boot_only:
    description: Change nothing but the persistent configuration, for the VM's next start.
    type: bool
    default: false
  state:
    description: V(reverted) restores what was set before the standing application.
    type: str
    choices: [applied, reverted]
    default: applied
"""

EXAMPLES = r"""
- name: Apply the assigned profile
  vmtune.vmtune.apply:
    vm: db1
"""

RETURN = r"""
application:
  description: The application, if one was made or reverted.
  returned: changed, not in check mode
  type: dict
outcomes:
  description: How each tunable stands.
  returned: when state is applied
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.vmtune.vmtune.plugins.module_utils.service import (
    ServiceError,
    arguments,
    difference,
    outcome_texts,
    run,
)


def manage(module, service):
    """Apply or revert."""
    vm = service.vm(module.params["vm"])
    if module.params["state"] == "reverted":
        return _revert(module, service, vm)
    path = f"/vms/{vm['uuid']}"
    chosen = {key: module.params[key] for key in ("profile", "revision")}
    plan = _plan(module, service, path, chosen)
    if plan["profile"] is None:
        if module.check_mode:
            module.warn(f"no profile for {vm['name']} yet, unless a task before this one makes it")
            return dict(changed=True, outcomes=[], diff=difference({}, {}))
        raise ServiceError(
            f"profile: none is assigned to {vm['name']}; remedy: give one, or assign one"
        )
    standing = _standing(service, path)
    if standing is not None and _is(standing, plan) and standing["clean"]:
        return dict(changed=False, outcomes=standing["outcomes"])
    differing = [item for item in plan["items"] if item["differs"]]
    diff = difference(
        {item["tunable"]: item["current"]["text"] for item in differing},
        {item["tunable"]: item["wanted"]["text"] for item in differing},
    )
    if module.check_mode:
        _refuse_blocked(module, plan)
        return dict(changed=True, outcomes=[], diff=diff)
    order = {key: module.params[key] for key in ("best_effort", "boot_only")}
    made = service.post(f"{path}/applications", {**chosen, **order})
    if made["state"] != "applied":
        said = [problem["message"] for problem in made["problems"]]
        said += outcome_texts(made["outcomes"])
        raise ServiceError(f"the application is {made['state']}: {'; '.join(said)}")
    return dict(changed=True, application=made, outcomes=made["outcomes"], diff=diff)


def _plan(module, service, path, chosen):
    """What would be set. In check mode no task before this one has made its profile."""
    try:
        return service.post(f"{path}/plan", chosen)
    except ServiceError as error:
        if module.check_mode and [p.get("field") for p in error.problems] == ["profile"]:
            return {"profile": None}
        raise


def _standing(service, path):
    """What stands, compared with what the VM runs with; None where nothing was applied."""
    try:
        found = service.post(f"{path}/verify")
    except ServiceError as error:
        if error.status == 404:
            return None
        raise
    return found if found["application"] else None


def _is(standing, plan):
    return (standing["profile"], standing["revision"]) == (plan["profile"], plan["revision"])


def _refuse_blocked(module, plan):
    if plan["blockers"] and not module.params["best_effort"]:
        found = [f for f in plan["findings"] if f["code"] in plan["blockers"]]
        said = "; ".join(f"{f['code']}: {f['message']}; remedy: {f['remedy']}" for f in found)
        raise ServiceError(f"it would be refused: {said}")


def _revert(module, service, vm):
    standing = (vm["tuning"] or {}).get("application")
    if not standing:
        return dict(changed=False)
    made = service.get(f"/applications/{standing}")
    before = {o["tunable"]: (o["seen"] or {}).get("text") for o in made["outcomes"]}
    result = dict(changed=True, diff=difference(before, None))
    if not module.check_mode:
        result["application"] = service.post(f"/applications/{standing}/revert")
    return result


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec=arguments(
            vm=dict(type="str", required=True),
            profile=dict(type="str"),
            revision=dict(type="int"),
            best_effort=dict(type="bool", default=False),
            boot_only=dict(type="bool", default=False),
            state=dict(type="str", choices=["applied", "reverted"], default="applied"),
        ),
        required_by={"revision": ("profile",)},
        supports_check_mode=True,
    )
    run(module, manage)


if __name__ == "__main__":
    main()

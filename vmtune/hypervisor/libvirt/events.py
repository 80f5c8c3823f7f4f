"""libvirt's events in vmtune's words. The numbers are libvirt's ABI (libvirt-domain.h)."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from vmtune.hypervisor.protocol import DriverEvent, EventKind
from vmtune.hypervisor.qemu.block_allowlist import LIBVIRT_COPY
from vmtune.model.host.facts import VmState

_STARTED, _STOPPED = 2, 5
_BY_MIGRATION = {_STARTED: 1, _STOPPED: 3}
_STATES = {
    _STARTED: VmState.RUNNING,
    3: VmState.PAUSED,
    4: VmState.RUNNING,
    _STOPPED: VmState.SHUT_OFF,
    7: VmState.PAUSED,
    8: VmState.OTHER,
}

_BEGINS = "running"
"""Status of a job of QEMU's; it has it once, unless it is paused (JobVerbTable of job.c)."""
JOB_ENDED = "job ended"
"""Detail of a migration-status event where libvirt does not say how it ended."""


def read_event(
    name: str,
    vm: UUID,
    details: tuple[Any, ...],  # any: what libvirt-python passes for each kind
) -> DriverEvent | None:
    """One event, or None where it says nothing to vmtune."""
    match name, details:
        case "VIR_DOMAIN_EVENT_ID_LIFECYCLE", (int(what), int(why), *_):
            state = _STATES.get(what)
            if state is None:
                return None
            if _BY_MIGRATION.get(what) == why:
                state = VmState.INCOMING if what == _STARTED else VmState.MIGRATED
            return DriverEvent(EventKind.VM_STATE, vm, state.value)
        case "VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION", (int(iteration), *_):
            return DriverEvent(EventKind.MIGRATION_ITERATION, vm, str(iteration))
        case "VIR_DOMAIN_EVENT_ID_JOB_COMPLETED", _:
            return DriverEvent(EventKind.MIGRATION_STATUS, vm, JOB_ENDED)
        case "MIGRATION", (_, _, _, str(text), *_):
            status = json.loads(text).get("status", "")
            return DriverEvent(EventKind.MIGRATION_STATUS, vm, str(status))
        case "JOB_STATUS_CHANGE", (_, _, _, str(text), *_):
            job = json.loads(text)
            if job.get("status") == _BEGINS and str(job.get("id")).startswith(LIBVIRT_COPY):
                return DriverEvent(EventKind.DISK_COPY, vm, str(job["id"]))
    return None

"""What QEMU calls things, read into vmtune's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vmtune.model.host.facts import VmState
from vmtune.model.tunables.tunable import Value
from vmtune.model.versions import Version

MAIN_LOOP_ID = "main-loop"
"""The id that libvirt gives the main-loop object too (its <defaultiothread>)."""

_STATES = {
    "running": VmState.RUNNING,
    "inmigrate": VmState.INCOMING,
    "postmigrate": VmState.MIGRATED,
    "shutdown": VmState.SHUT_OFF,
    "paused": VmState.PAUSED,
    "prelaunch": VmState.PAUSED,
    "finish-migrate": VmState.PAUSED,
    "save-vm": VmState.PAUSED,
    "restore-vm": VmState.PAUSED,
    "suspended": VmState.PAUSED,
    "io-error": VmState.PAUSED,
}

# libvirt's "no limit" is the greatest int64 that is whole MiB/s; no operator means such a number.
_NO_LIMIT_BYTES_PER_S = 1 << 62


def vm_state(status: str) -> VmState:
    """RunState of QEMU (qapi/run-state.json) as a VM's state."""
    return _STATES.get(status, VmState.OTHER)


def version(reply: Mapping[str, Any]) -> Version:  # any JSON: query-version's reply
    """query-version's reply as a version."""
    number = reply["qemu"]
    return Version(number["major"], number["minor"], number["micro"])


def parameters(reply: Mapping[str, Any]) -> dict[str, Value]:  # any JSON
    """query-migrate-parameters' reply, without what is no single value."""
    values = {k: v for k, v in reply.items() if isinstance(v, bool | int | str)}
    limit = values.get("max-bandwidth")
    if isinstance(limit, int) and not 0 <= limit < _NO_LIMIT_BYTES_PER_S:
        values["max-bandwidth"] = 0
    return values


def capabilities(reply: list[dict[str, Any]]) -> dict[str, bool]:  # any JSON
    """query-migrate-capabilities' reply, by name."""
    return {row["capability"]: bool(row["state"]) for row in reply}


def children(reply: list[dict[str, Any]], *types: str) -> tuple[str, ...]:  # any JSON
    """qom-list's children whose type is one of *types*."""
    wanted = {f"child<{name}>" for name in types}
    return tuple(sorted(row["name"] for row in reply if row["type"] in wanted))

"""Whether the hosts have the limits that a profile wants, and whether vmtune may raise them.
Pure."""

from __future__ import annotations

from collections.abc import Iterator

from vmtune.model.findings.table import Finding
from vmtune.model.host.limits import SYSCTLS
from vmtune.model.plan.situation import Situation
from vmtune.model.tunables.tunable import Route, Side, Tunable, Value


def check_host(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """Host settings are always checked. More than was requested is as good."""
    if tunable.route is not Route.HOST or not isinstance(wanted, int):
        return
    sides = [("source", situation.host)]
    if situation.destination is not None and tunable.side is Side.BOTH:
        sides.append(("destination", situation.destination.host))
    for side, host in sides:
        value = host.sysctls.get(tunable.name)
        if tunable.name == "locked_memory_bytes":
            value = situation.vm.locked_memory_limit_bytes
            if situation.vm.may_lock_memory:
                continue
        if value is not None and value < wanted:
            if tunable.name == "locked_memory_bytes":
                evidence: dict[str, str | int] = {"value_bytes": value, "wanted_bytes": wanted}
                yield Finding("locked_memory_differs", tunable.name, evidence)
                return
            name = SYSCTLS[tunable.name].name
            if situation.may_change_host(tunable.name):
                yield Finding(
                    "host_changes",
                    tunable.name,
                    {"name": name, "value": value, "wanted": wanted},
                )
                continue
            command = f"sysctl -w {name}={wanted}"
            yield Finding(
                "host_value_differs",
                tunable.name,
                {"side": side, "name": name, "value": value, "wanted": wanted, "command": command},
            )

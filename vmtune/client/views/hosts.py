"""Hosts as text."""

from __future__ import annotations

from vmtune.client.connection.http import Client, Document, segment
from vmtune.client.views.render import moment

_RUNS = ("running", "paused", "incoming")


def in_maintenance(client: Client, host: Document) -> str:
    """Whether a host is in maintenance, and whether it may be rebooted: its VMs are asked for."""
    name = host["name"]
    if host["maintenance_since"] is None:
        return f"{name} is not in maintenance"
    begun = f"{name} is in maintenance since {moment(host['maintenance_since'])}"
    found = client.items("/vms", {"host": name})
    running = sum(1 for vm in found if vm["state"] in _RUNS)
    state = client.get(f"/hosts/{segment(name)}")["state"]  # as of that question
    if state != "up":
        return f"{begun}; whether VMs run on it is not known: it is {state}"
    if running:
        return f"{begun} and still runs {running} VM{'' if running == 1 else 's'}"
    return f"{begun} and runs no VMs: safe to reboot"

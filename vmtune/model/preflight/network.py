"""The preflight of the migration network's addresses. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from vmtune.model.findings.table import Finding
from vmtune.model.host.network import direct_address
from vmtune.model.plan.situation import Situation
from vmtune.model.tunables.rows.network import NETWORK_NAMES
from vmtune.model.tunables.tunable import Tunable, Value


def check_network(tunable: Tunable, wanted: Value, situation: Situation) -> Iterator[Finding]:
    """Its placeholders must have made addresses, which have a meaning here."""
    if tunable.name not in NETWORK_NAMES or situation.destination is None:
        return
    try:
        tunable.accept(wanted)
    except ValueError:
        evidence: dict[str, str | int] = {"name": tunable.name, "value": str(wanted)}
        yield Finding("network_address_invalid", tunable.name, evidence)
        return
    if situation.libvirt:
        return
    if tunable.name == "disks_uri":
        yield Finding("disks_uri_needs_libvirt", tunable.name)
    elif tunable.name == "listen_address":
        address = direct_address(situation.values, situation.destination.host.migration_address)
        if not address.connect:
            yield Finding("migrate_uri_missing", tunable.name, {"address": str(wanted)})

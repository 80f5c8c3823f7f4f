"""Programs that manage a host's VMs themselves, and what of a migration is theirs to set.

Each marks its VMs in the metadata of the domain's XML. What it sets at each migration, or while
one runs, vmtune leaves to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from vmtune.model.tunables.built_in import BUILT_IN


@dataclass(frozen=True, slots=True)
class Manager:
    """One of them.

    :param name: as people know it.
    :param namespace: how the XML namespace of its metadata begins.
    :param owns: the tunables that are its own, and by which of its settings each is set.
    :param ends: its settings for a migration that does not end: what it does then, no step does.
    :param settings: where those are written, in words.
    :param migrate: its command that migrates a VM.
    """

    name: str
    namespace: str
    owns: Mapping[str, str]
    ends: str
    settings: str
    migrate: str

    def __post_init__(self) -> None:
        unknown = set(self.owns) - set(BUILT_IN)
        assert not unknown, unknown

    def left(self, tunable: str = "") -> str:
        """Why *tunable*, or without one the end of a migration, is left to it."""
        setting = self.owns[tunable] if tunable else self.ends
        return f"left to {self.name}: {setting} in {self.settings}"


NOVA = Manager(
    name="OpenStack Nova",
    namespace="http://openstack.org/xmlns/libvirt/nova/",
    # nova/virt/libvirt/driver.py of 26 and 34: _parse_migration_flags, _live_migration_operation
    # and _live_migration_monitor; nova/virt/libvirt/migration.py: update_downtime.
    owns=MappingProxyType(
        {
            "downtime_limit_ms": "live_migration_downtime, in live_migration_downtime_steps",
            "max_bandwidth_bytes_per_s": "live_migration_bandwidth",
            "multifd": "live_migration_parallel_connections",
            "multifd_channels": "live_migration_parallel_connections",
            "auto_converge": "live_migration_permit_auto_converge",
            "postcopy": "live_migration_permit_post_copy",
            "tls": "live_migration_with_native_tls",
            "migrate_uri": "live_migration_inbound_addr",
        }
    ),
    ends="live_migration_completion_timeout and live_migration_timeout_action",
    settings="[libvirt] of nova.conf",
    migrate="openstack server migrate --live-migration",
)
MANAGERS: Mapping[str, Manager] = MappingProxyType({row.name: row for row in (NOVA,)})
"""By name."""
VMTUNE, LIBVIRT = "vmtune", "libvirt"
"""Who else sets the values that QEMU migrates with."""


def managed_by(namespaces: Iterable[str]) -> str:
    """Whose VM it is, by the namespaces of its metadata; empty if nobody's that is known."""
    found = list(namespaces)
    for row in MANAGERS.values():
        if any(namespace.startswith(row.namespace) for namespace in found):
            return row.name
    return ""

"""What a plan is made from: the wanted values, the VM, its host, and where it is to go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vmtune.model.host.facts import Connection, HostFacts, Reading, VmFacts
from vmtune.model.host.hardware import Offer
from vmtune.model.host.limits import SYSCTLS
from vmtune.model.migration.steps import Step
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rows.storage import CALL_ARGUMENTS
from vmtune.model.tunables.tunable import Route, Side, Tunable, Value


@dataclass(frozen=True, slots=True)
class Encrypted:
    """What recorded migrations say of one with TLS.

    :param sends_bytes_per_s: the most that TLS sent between the two hosts by as many channels.
    :param records: how many migrations say so.
    :param dirties_bytes_per_s: the most that the guest dirtied in its newest migration.
    """

    sends_bytes_per_s: int
    records: int
    dirties_bytes_per_s: int


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a VM is to go.

    :param vm: the QEMU that waits there, in direct mode; None where there is none yet.
    :param offer: what the host offers of what the VM needs; None where it was not asked.
    :param occupied: a running VM of that UUID or name is there already.
    :param in_maintenance: the operator has said that it is to get no VMs.
    :param encrypted: of a migration with TLS; None where no record says anything of one.
    """

    name: str
    host: HostFacts
    vm: VmFacts | None = None
    occupied: bool = False
    offer: Offer | None = None
    in_maintenance: bool = False
    encrypted: Encrypted | None = None


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the operator allows vmtune to do beyond the VM's own settings.

    :param destination_command_line: -global arguments in the destination's XML, which
        taint the guest.
    :param host_changes: sysctls of the machine that the service runs on.
    :param pack_consents: commands, properties and objects that tunable packs may use.
    """

    destination_command_line: bool = False
    host_changes: bool = False
    pack_consents: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that a preflight check may use.

    :param destination: None where the plan is for an application, not for a migration.
    :param steps: the profile's convergence steps.
    :param tunables: those that the service knows, packs included.
    """

    values: Mapping[str, Value]
    vm: VmFacts
    host: HostFacts
    destination: Destination | None = None
    permissions: Permissions = Permissions()
    steps: tuple[Step, ...] = ()
    tunables: TunableRegistry = field(kw_only=True)

    @property
    def libvirt(self) -> bool:
        """The source is managed through libvirt."""
        return self.host.connection is Connection.LIBVIRT

    def on(self, name: str) -> bool:
        """Whether the profile switches *name* on."""
        return self.values.get(name) is True

    def reading(self, tunable: Tunable) -> Reading:
        """What *tunable* is set to right now: on the host, or in QEMU."""
        if tunable.route is Route.HOST and tunable.name in self.host.sysctls:
            return Reading(self.host.sysctls[tunable.name])
        why = (
            "it cannot be read"
            if tunable.name not in CALL_ARGUMENTS
            else "each migration has its own"
        )
        return self.vm.readings.get(tunable.name, Reading(None, why_unknown=why))

    def number(self, name: str) -> int | None:
        """What *name* would be: the wanted number, else the current one."""
        wanted = self.values.get(name)
        if wanted is None:
            wanted = self.vm.readings.get(name, Reading(None)).value
        return wanted if isinstance(wanted, int) else None

    def may_change_host(self, name: str) -> bool:
        """Whether an application may set this tunable on the VM's host. A migration only checks
        hosts."""
        here = self.host.local and self.destination is None
        return self.permissions.host_changes and here and name in SYSCTLS

    def route(self, tunable: Tunable) -> Route:
        """The route that *tunable* takes here.

        What libvirt is too old to know it does not overwrite either: a value of the
        source alone then goes through the monitor, if QEMU has it at all.
        """
        known_from = tunable.libvirt.since if tunable.libvirt else None
        too_old = (
            self.libvirt
            and known_from is not None
            and self.host.libvirt is not None
            and known_from > self.host.libvirt
        )
        by_monitor = tunable.side is Side.SOURCE and tunable.qmp is not None
        if too_old and tunable.route is Route.MIGRATE and by_monitor:
            return Route.MONITOR
        return tunable.route

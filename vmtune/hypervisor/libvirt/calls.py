"""The calls of libvirt that vmtune makes, typed. All of them block."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from vmtune.hypervisor.libvirt.errors import (
    OPERATION_UNSUPPORTED,
    LibvirtRefused,
    is_of_the_way,
    translate,
    unreachable,
)
from vmtune.hypervisor.libvirt.library import Library, load_library
from vmtune.model.host.facts import Postcopy, VmState
from vmtune.model.migration.disks import Mirrored
from vmtune.model.versions import Version

# virDomainState and its reasons: libvirt's ABI.
_RUNNING_POSTCOPY = (1, 10)
_POSTCOPY = {
    _RUNNING_POSTCOPY: Postcopy.ACTIVE,
    (1, 11): Postcopy.FAILED,
    (3, 12): Postcopy.ACTIVE,
    (3, 13): Postcopy.FAILED,
}
"""``_POSTCOPY`` and ``_POSTCOPY_FAILED``; the latter since libvirt 8.5 on both sides."""
_PAUSED = 3
_PAUSED_MIGRATION = 2
_PAUSED_STARTING_UP = 11
_SHUT_OFF_MIGRATED = (5, 4)
_STATES = {
    1: VmState.RUNNING,
    2: VmState.RUNNING,
    _PAUSED: VmState.PAUSED,
    5: VmState.SHUT_OFF,
    7: VmState.PAUSED,
}

_JOB_IN_BYTES = 1
"""VIR_DOMAIN_BLOCK_JOB_INFO_BANDWIDTH_BYTES."""
Parameters = Mapping[str, int | str | list[str]]
"""Typed parameters by libvirt's names; a list is one parameter given several times."""


@dataclass(frozen=True, slots=True)
class VmStatus:
    """What a VM is doing.

    :param arriving: it is the destination of a migration that has not ended: libvirt then
        gives no XML and answers no monitor command, but lets them wait for half a minute
        and refuses them.
    """

    uuid: UUID
    name: str
    state: VmState
    arriving: bool
    postcopy: Postcopy = Postcopy.NONE

    @property
    def has_monitor(self) -> bool:
        """Whether QEMU can be asked."""
        return self.state in (VmState.RUNNING, VmState.PAUSED) and not self.arriving


class Domain:
    """One VM. Every method may raise what :func:`~vmtune.hypervisor.libvirt.errors.translate`
    returns."""

    def __init__(self, connection: Connection, raw: Any) -> None:  # any: libvirt has no types
        self._connection = connection
        self._library = connection.library
        self._raw = raw
        self._errors = connection.errors

    def status(self) -> VmStatus:
        """What it is doing."""
        with self._errors():
            number, reason = self._raw.state(0)[:2]
            uuid, name = UUID(self._raw.UUIDString()), str(self._raw.name())
        moving = (_PAUSED, _PAUSED_MIGRATION), (_PAUSED, _PAUSED_STARTING_UP), *_POSTCOPY
        arriving = (number, reason) in moving and self._is_destination()
        postcopy = _POSTCOPY.get((number, reason), Postcopy.NONE)
        state = _STATES.get(number, VmState.OTHER)
        if arriving and number == _PAUSED and postcopy is Postcopy.NONE:
            state = VmState.INCOMING
        elif (number, reason) == _SHUT_OFF_MIGRATED:
            state = VmState.MIGRATED
        return VmStatus(uuid, name, state, arriving, postcopy)

    def _is_destination(self) -> bool:
        """A paused VM in a migration may be either side; only the source has statistics."""
        try:
            with self._errors():
                self._raw.jobInfo()
        except LibvirtRefused as refusal:
            return refusal.number == OPERATION_UNSUPPORTED
        return False

    def run_id(self) -> int:
        """A number that its next start changes; -1 when it does not run."""
        with self._errors():
            return int(self._raw.ID())

    def is_active(self) -> bool:
        """Whether it has a QEMU."""
        with self._errors():
            return bool(self._raw.isActive())

    def is_persistent(self) -> bool:
        """Whether it has a configuration that outlives its QEMU."""
        with self._errors():
            return bool(self._raw.isPersistent())

    def memory_and_vcpus(self) -> tuple[int, int]:
        """Memory in bytes and vCPUs, without waiting for what the VM is at."""
        with self._errors():
            info = self._raw.info()
        return int(info[1]) << 10, int(info[3])

    def xml(self, *flags: str) -> str:
        """Its XML, with flags such as ``VIR_DOMAIN_XML_INACTIVE``."""
        with self._errors():
            return str(self._raw.XMLDesc(self._library.flags(*flags)))

    def snapshots(self) -> int:
        """How many snapshots libvirt keeps of it."""
        with self._errors():
            return int(self._raw.snapshotNum(0))

    def monitor(self, command: str) -> str:
        """A QMP command, and QEMU's reply, which may be an error."""
        with self._errors():
            return str(self._library.qemu.qemuMonitorCommand(self._raw, command, 0))

    def agent(self, command: str, within_s: int) -> str:
        """A command of the guest's agent, and its reply."""
        with self._errors():
            return str(self._library.qemu.qemuAgentCommand(self._raw, command, within_s, 0))

    def set_iothread(self, number: int, parameters: Parameters) -> None:
        """Set properties of a running iothread, so that libvirt knows of them."""
        live = self._library.flags("VIR_DOMAIN_AFFECT_LIVE")
        with self._errors():
            self._raw.setIOThreadParams(number, dict(parameters), live)

    def migrate(self, destination: str, parameters: Parameters, flags: int) -> None:
        """virDomainMigrateToURI3: blocks until the migration has ended."""
        with self._errors():
            self._raw.migrateToURI3(destination, dict(parameters), flags)

    def abort_job(self) -> None:
        """Cancel the VM's current job."""
        with self._errors():
            self._raw.abortJob()

    def start_postcopy(self) -> None:
        """Switch its migration to another host to post-copy."""
        with self._errors():
            self._raw.migrateStartPostCopy(0)

    def pause_postcopy(self) -> None:
        """Break off the connection of its migration in post-copy, which can be recovered."""
        flags = self._library.flags("VIR_DOMAIN_ABORT_JOB_POSTCOPY")
        with self._errors():
            self._raw.abortJobFlags(flags)

    def suspend(self) -> None:
        """Stop the guest."""
        with self._errors():
            self._raw.suspend()

    def resume(self) -> None:
        """Resume the guest."""
        with self._errors():
            self._raw.resume()

    def is_migrating_out(self) -> bool:
        """Whether its job is a migration to another host; other jobs are not ours to end."""
        return self.migrating_out_ms() is not None

    def migrating_out_ms(self) -> int | None:
        """For how long its job has been a migration to another host; None if it is not."""
        with self._errors():
            stats = self._raw.jobStats(0)
        out = self._library.constant("VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT")
        return int(stats.get("time_elapsed", 0)) if stats.get("operation") == out else None

    def block_sizes(self, target: str) -> tuple[int, int]:
        """Bytes that the guest sees of a disk, and that it takes on its host."""
        with self._errors():
            capacity, allocated, _physical = self._raw.blockInfo(target, 0)
        return int(capacity), int(allocated)

    def copying(self, target: str) -> Mirrored | None:
        """How far the copy of a disk is; None where it is not copied right now."""
        with self._errors():
            job = self._raw.blockJobInfo(target, _JOB_IN_BYTES)
        if not job or job.get("type") != self._library.constant("VIR_DOMAIN_BLOCK_JOB_TYPE_COPY"):
            return None
        copied, total = int(job["cur"]), int(job["end"])
        return Mirrored(total, copied, ready=0 < total <= copied)

    def resident_bytes(self) -> int | None:
        """What of its QEMU is in memory; None where libvirt does not say."""
        with self._errors():
            kib = self._raw.memoryStats().get("rss")
        return None if kib is None else int(kib) * 1024

    def completed_job(self) -> dict[str, int]:
        """The figures of its last completed job; empty when there was none."""
        flags = self._library.flags(
            "VIR_DOMAIN_JOB_STATS_COMPLETED", "VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED"
        )
        with self._errors():
            stats = self._raw.jobStats(flags)
        return {name: value for name, value in stats.items() if isinstance(value, int)}


class Pool:
    """A storage pool that is a folder. Every method may raise what a domain's do."""

    def __init__(self, connection: Connection, raw: Any) -> None:  # any: as above
        self._raw = raw
        self._errors = connection.errors

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._raw.name())

    def look(self) -> tuple[frozenset[str], int]:
        """The names in it right now, and the bytes that are free."""
        with self._errors():
            self._raw.refresh(0)
            return frozenset(self._raw.listVolumes()), int(self._raw.info()[3])

    def xml(self) -> str:
        """Its XML."""
        with self._errors():
            return str(self._raw.XMLDesc(0))

    def volume_xml(self, name: str) -> str:
        """The XML of a file in it."""
        with self._errors():
            return str(self._raw.storageVolLookupByName(name).XMLDesc(0))

    def create(self, xml: str) -> None:
        """Create a file in it, which must not exist."""
        with self._errors():
            self._raw.createXML(xml, 0)

    def delete(self, name: str) -> None:
        """Delete a file in it."""
        with self._errors():
            self._raw.storageVolLookupByName(name).delete(0)

    def deactivate(self) -> None:
        """Let libvirt forget it, if nobody has defined it. Its files stay."""
        with self._errors():
            self._raw.destroy()


EventCallback = Callable[[str, UUID, tuple[Any, ...]], None]  # any: as each event has it
"""Called in libvirt's event thread with the event's name, the VM, and what it says."""

_ACTIVE_POOLS = "VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE"
_INACTIVE_POOLS = "VIR_CONNECT_LIST_STORAGE_POOLS_INACTIVE"
_EVENTS = (
    "VIR_DOMAIN_EVENT_ID_LIFECYCLE",
    "VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION",
    "VIR_DOMAIN_EVENT_ID_JOB_COMPLETED",
)
QEMU_MIGRATION, QEMU_JOB = "MIGRATION", "JOB_STATUS_CHANGE"
"""QEMU's own events, which libvirt passes on."""

# A dead peer is noticed after 15 to 20 s. Daemons answer this from their first thread,
# also when they are busy.
_KEEPALIVE_S, _KEEPALIVE_COUNT = 5, 3


class Connection:
    """A connection to a libvirt daemon."""

    def __init__(self, library: Library, uri: str, raw: Any) -> None:  # any: as above
        self.library = library
        self.uri = uri
        self._raw = raw

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Raise libvirt's errors as vmtune's."""
        try:
            yield
        except self.library.error as error:
            number, message = describe(error)
            alive = self.is_alive() and (not is_of_the_way(message) or self._answers())
            raise translate(number, message, alive, self.uri) from error

    def is_alive(self) -> bool:
        """Whether the daemon still is there, as far as is known."""
        try:
            return bool(self._raw.isAlive() == 1)
        except self.library.error:
            return False

    def _answers(self) -> bool:
        """Whether the daemon answers: virtproxyd's connection lives on where virtqemud is gone."""
        try:
            self._raw.getHostname()
        except self.library.error:
            return False
        return True

    def domain(self, vm: UUID) -> Domain:
        """A VM.

        :raise NotFound: the host does not have it.
        """
        with self.errors():
            return Domain(self, self._raw.lookupByUUIDString(str(vm)))

    def domains(self) -> list[Domain]:
        """The VMs, running or not."""
        with self.errors():
            return [Domain(self, raw) for raw in self._raw.listAllDomains(0)]

    def pool_at(self, folder: str) -> Pool | None:
        """The active storage pool that is this folder; None where there is none."""
        try:
            with self.errors():
                raw = self._raw.storagePoolLookupByTargetPath(folder)
                if not raw.isActive():
                    return None
        except LibvirtRefused:
            return None
        return Pool(self, raw)

    def create_pool(self, xml: str) -> Pool:
        """A storage pool that is there until it is deactivated."""
        with self.errors():
            return Pool(self, self._raw.storagePoolCreateXML(xml, 0))

    def active_pools(self) -> list[Pool]:
        """The active storage pools."""
        return self.pools_named("")

    def pools_named(self, prefix: str) -> list[Pool]:
        """The active storage pools whose names begin so."""
        return [pool for pool in self._pools(_ACTIVE_POOLS) if pool.name.startswith(prefix)]

    def inactive_pools(self) -> list[Pool]:
        """The storage pools that are defined and not active."""
        return self._pools(_INACTIVE_POOLS)

    def _pools(self, kind: str) -> list[Pool]:
        with self.errors():
            found = self._raw.listAllStoragePools(self.library.flags(kind))
            return [Pool(self, raw) for raw in found]

    def define(self, xml: str) -> None:
        """Store a persistent configuration."""
        with self.errors():
            self._raw.defineXML(xml)

    def hostname(self) -> str:
        """The host's name as its daemon knows it."""
        with self.errors():
            return str(self._raw.getHostname())

    def libvirt_version(self) -> Version:
        """The daemon's."""
        with self.errors():
            return Version.from_libvirt(self._raw.getLibVersion())

    def qemu_version(self) -> Version:
        """The host's default emulator's; QEMU packs its version as libvirt does."""
        with self.errors():
            return Version.from_libvirt(self._raw.getVersion())

    def capabilities(self) -> str:
        """The host's capabilities XML."""
        with self.errors():
            return str(self._raw.getCapabilities())

    def compare_cpu(self, kind: str, machine: str, cpu_xml: str) -> int:
        """How a CPU compares with what this host can give (VIR_CPU_COMPARE)."""
        with self.errors():
            return int(self._raw.compareHypervisorCPU(None, None, machine, kind, cpu_xml, 0))

    def free_pages(self, size_kib: int) -> int:
        """Free pages of a size, on the whole host."""
        with self.errors():
            cells = self._raw.getFreePages([size_kib], -1, 1, 0)
        return sum(int(count) for cell in cells.values() for count in cell.values())

    def domain_capabilities(self, kind: str, machine: str | None = None) -> str:
        """What VMs of type *kind* (``kvm``) can have here, of any machine type or of one.

        :raise CommandRefused: the host cannot run such VMs.
        """
        with self.errors():
            return str(self._raw.getDomainCapabilities(None, None, machine, kind, 0))

    def cpus_and_memory(self) -> tuple[int, int]:
        """Logical CPUs, and memory in bytes."""
        with self.errors():
            info = self._raw.getInfo()
        return int(info[2]), int(info[1]) << 20

    def idle_cpu_s(self) -> float | None:
        """For how long its CPUs together had nothing to do; None if libvirt does not know."""
        try:
            with self.errors():
                found: Mapping[str, int] = self._raw.getCPUStats(-1, 0)  # of all CPUs together
        except LibvirtRefused:
            return None
        if "idle" not in found:
            return None
        return (int(found["idle"]) + int(found.get("iowait", 0))) / 1e9

    def available_memory(self) -> int | None:
        """Bytes that are free, or that the host's caches would give back; None if libvirt does not
        know."""
        try:
            with self.errors():
                found: Mapping[str, int] = self._raw.getMemoryStats(-1, 0)
        except LibvirtRefused:
            return None
        if "free" not in found:
            return None
        return sum(int(found.get(name, 0)) for name in ("free", "buffers", "cached")) << 10

    def watch(self, on_event: EventCallback, on_close: Callable[[str], None]) -> None:
        """Receive events until the connection is closed, in libvirt's event thread."""

        def listener(name: str) -> Callable[..., None]:
            def notify(_: object, raw: Any, *details: Any) -> None:  # any: as the event has it
                on_event(name, UUID(raw.UUIDString()), details[:-1])

            return notify

        with self.errors():
            self._raw.registerCloseCallback(lambda *_: on_close("the daemon went away"), None)
            for name in _EVENTS:
                number = self.library.constant(name)
                self._raw.domainEventRegisterAny(None, number, listener(name), None)
        for name in (QEMU_MIGRATION, QEMU_JOB):
            with contextlib.suppress(LibvirtRefused), self.errors():
                self.library.qemu.qemuMonitorEventRegister(
                    self._raw, None, name, listener(name), None
                )

    def close(self) -> None:
        """Let go of it. Calls that are under way end with an error."""
        with contextlib.suppress(self.library.error):
            self._raw.unregisterCloseCallback()
        with contextlib.suppress(self.library.error):
            self._raw.close()


def open_connection(uri: str) -> Connection:
    """Connect, without asking anybody for a password.

    :raise HostUnreachable: with libvirt's reason.
    :raise SetupError: libvirt-python is not installed.
    """
    library = load_library()
    try:
        raw = library.libvirt.openAuth(without_questions(uri), _from_file(library), 0)
    except library.error as error:
        raise unreachable(uri, *describe(error)) from error
    connection = Connection(library, uri, raw)
    # A driver that runs in this process (test:///) has no keepalive.
    with contextlib.suppress(library.error):
        raw.setKeepAlive(_KEEPALIVE_S, _KEEPALIVE_COUNT)
    return connection


def _from_file(library: Library) -> list[object]:
    """What lets libvirt fill in a name and a password of its auth.conf; nobody is asked for more.

    Without any credentials offered, it does not look into that file.
    """
    kinds = ("VIR_CRED_AUTHNAME", "VIR_CRED_PASSPHRASE", "VIR_CRED_REALM")
    return [[library.constant(kind) for kind in kinds], lambda *_: -1, None]


def without_questions(uri: str) -> str:
    """*uri*, so that ssh fails where it would ask on the terminal."""
    if not uri.startswith("qemu+ssh://") or "no_tty=" in uri:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}no_tty=1"


def describe(error: Any) -> tuple[int, str]:  # any: libvirt.libvirtError, which has no types
    """libvirt's error code and message."""
    return error.get_error_code() or 0, str(error)

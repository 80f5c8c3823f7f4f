"""The calls of libvirt about one VM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from vmtune.hypervisor.libvirt.calls.base import Calls
from vmtune.hypervisor.libvirt.errors import OPERATION_UNSUPPORTED, LibvirtRefused
from vmtune.model.host.facts import Postcopy, VmState
from vmtune.model.migration.disks import Mirrored

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

    def __init__(self, connection: Calls, raw: Any) -> None:  # any: libvirt has no types
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

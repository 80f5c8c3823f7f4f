"""Evacuations: all VMs of a host move to others. The order, the record, its states. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID, uuid5

from vmtune.model.findings.table import Finding
from vmtune.model.host.disks import Disk
from vmtune.model.host.facts import VmState
from vmtune.model.migration.intent import Intent
from vmtune.model.tunables.tunable import Value

PRIORITY_LABEL = "priority"
"""The VM's label whose value, a whole number, says how early it moves; 0 where it has none."""


class Order(StrEnum):
    """Which VMs move first."""

    PRIORITY = "priority"
    """Higher values of the label ``priority`` first; of the same, the larger first."""
    LARGEST_FIRST = "largest-first"
    SMALLEST_FIRST = "smallest-first"


class LocalDisks(StrEnum):
    """What becomes of VMs with disks that their destination does not share."""

    PROFILE = "profile"
    """The VM's profile says whether they are copied; where it does not, the VM stays."""
    COPY = "copy"
    """They are copied along, whatever the profile says."""
    LEAVE = "leave"
    """The VM stays, whatever the profile says."""


class EvacuationState(StrEnum):
    """How an evacuation ended, or where it stands."""

    RUNNING = "running"
    PAUSED = "paused"
    """No migration starts until it is resumed; running ones continue to their end."""
    COMPLETED = "completed"
    """Every VM that ran there has moved."""
    INCOMPLETE = "incomplete"
    """It is over, and some VMs are left, each with its reason."""
    FAILED = "failed"
    """Stopped: too many migrations failed, or a fault that resuming does not fix."""
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """It will start no more migrations."""
        return self not in (EvacuationState.RUNNING, EvacuationState.PAUSED)


_E = EvacuationState
_ENDS = frozenset(state for state in EvacuationState if state.ended)
NEXT: Mapping[EvacuationState, frozenset[EvacuationState]] = {
    _E.RUNNING: _ENDS | {_E.PAUSED},
    _E.PAUSED: _ENDS | {_E.RUNNING},
    **dict.fromkeys(_ENDS, frozenset()),
}
"""Which state may follow which."""
assert set(NEXT) == set(EvacuationState), "a state without its followers"


class EvacuationVmState(StrEnum):
    """Where one VM of an evacuation stands."""

    WAITING = "waiting"
    """Its migration is not requested yet."""
    REQUESTED = "requested"
    """Its migration's record has the rest."""
    MOVED = "moved"
    FAILED = "failed"
    ABORTED = "aborted"
    """An operator aborted its migration."""
    BLOCKED = "blocked"
    """The preflight found what stands against it."""
    NOT_PLACED = "not placed"
    """No host can take it."""
    NOT_RUNNING = "not running"
    """There is nothing to migrate live."""
    HANDLED_BY_OTHERS = "moved or stopped by others"
    """It was moved or shut off by others meanwhile."""
    NOT_STARTED = "not started"
    """The evacuation ended before its turn."""

    @property
    def ended(self) -> bool:
        """It will not change any more."""
        return self not in (EvacuationVmState.WAITING, EvacuationVmState.REQUESTED)

    @property
    def left(self) -> bool:
        """The VM still runs there, as far as is known, once the evacuation is over."""
        return self not in (
            EvacuationVmState.MOVED,
            EvacuationVmState.NOT_RUNNING,
            EvacuationVmState.HANDLED_BY_OTHERS,
        )


@dataclass(frozen=True, slots=True)
class EvacuationVm:
    """One VM of an evacuation.

    :param memory_bytes: 0 where it does not run.
    :param destination: empty where there is none for it.
    :param findings: what the preflight found for that destination.
    :param reason: why it is left; empty otherwise.
    :param disks: those that are copied along.
    :param values: added to its profile's for the migration.
    """

    vm: UUID
    name: str
    memory_bytes: int
    priority: int
    state: EvacuationVmState
    destination: str = ""
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    overrides: tuple[str, ...] = ()
    migration: UUID | None = None
    disks: tuple[Disk, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoomLeft:
    """A file system of a destination, and what the images of an evacuation's VMs leave of it.

    :param folders: the images' folders.
    :param promised_bytes: what copies of other VMs will still take of *free_bytes*.
    :param needed_bytes: what these VMs' images take.
    """

    host: str
    folders: tuple[str, ...]
    free_bytes: int
    promised_bytes: int
    needed_bytes: int

    @property
    def left_bytes(self) -> int:
        """Room that is left once all have come."""
        return max(0, self.free_bytes - self.promised_bytes - self.needed_bytes)


@dataclass(frozen=True, slots=True)
class EvacuationPlan:
    """What would move where, found out by a preflight for each VM. In the order of moving.

    :param considered: hosts that were examined; *refused* why others, or some of these,
        cannot take any VM.
    :param rooms: the file systems that images are copied to.
    """

    host: str
    order: Order
    vms: tuple[EvacuationVm, ...]
    considered: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    rooms: tuple[RoomLeft, ...] = ()

    @property
    def movable(self) -> tuple[EvacuationVm, ...]:
        """Those that would be migrated."""
        return tuple(vm for vm in self.vms if vm.state is EvacuationVmState.WAITING)

    @property
    def left(self) -> tuple[EvacuationVm, ...]:
        """Those that run and would stay."""
        return tuple(vm for vm in self.vms if vm.state.ended and vm.state.left)


@dataclass(frozen=True, slots=True)
class Evacuation:
    """The durable record of one evacuation, without its VMs.

    :param destinations: the hosts that were chosen; empty for any that is eligible.
    :param max_outgoing: fewer at once than the service's limit; None for that.
    :param stop_after_failures: it stops when so many migrations have failed; None: never.
    :param reason: why it failed or stopped; empty where a person said so.
    :param intent: that each migration has to keep; None for that of each VM's profile.
    :param local_disks: what becomes of VMs that have some.
    """

    id: UUID
    host: str
    destinations: tuple[str, ...]
    order: Order
    priority: int
    max_outgoing: int | None
    stop_after_failures: int | None
    profile: str
    state: EvacuationState
    reason: str
    created_at: datetime
    ended_at: datetime | None = None
    intent: Intent | None = None
    local_disks: LocalDisks = LocalDisks.PROFILE


@dataclass(frozen=True, slots=True)
class Tally:
    """How far an evacuation is.

    :param states: how many VMs are in each state.
    :param total_bytes: memory of all that were to move; *moved_bytes* of those that did.
    """

    states: Mapping[EvacuationVmState, int]
    total_bytes: int
    moved_bytes: int

    @property
    def total(self) -> int:
        """All its VMs."""
        return sum(self.states.values())

    @property
    def finished(self) -> int:
        """Those that are over."""
        return sum(count for state, count in self.states.items() if state.ended)

    @property
    def left(self) -> int:
        """Those that stay where they are."""
        return sum(c for state, c in self.states.items() if state.ended and state.left)


def migration_id(evacuation: UUID, vm: UUID) -> UUID:
    """The id of a VM's migration: derived from both, so that none is requested twice."""
    return uuid5(evacuation, str(vm))


def priority_of(labels: Mapping[str, str]) -> int:
    """How early a VM moves, by its label. What is no whole number counts as 0."""
    text = labels.get(PRIORITY_LABEL, "")
    digits = text[1:] if text[:1] == "-" else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


def ordinal(vm: EvacuationVm, order: Order) -> tuple[int, int, str]:
    """VMs move in ascending order of this."""
    match order:
        case Order.PRIORITY:
            return (-vm.priority, -vm.memory_bytes, str(vm.vm))
        case Order.LARGEST_FIRST:
            return (-vm.memory_bytes, -vm.priority, str(vm.vm))
        case Order.SMALLEST_FIRST:
            return (vm.memory_bytes, -vm.priority, str(vm.vm))


def end_of(tally: Tally) -> EvacuationState:
    """How an evacuation whose VMs are all over has ended."""
    return EvacuationState.INCOMPLETE if tally.left else EvacuationState.COMPLETED


RUNNING_STATES = (VmState.RUNNING, VmState.PAUSED)
"""A VM in one of them can be migrated live."""
NOT_MOVED = {
    VmState.SHUT_OFF: "it is shut off: there is nothing to migrate live",
    VmState.INCOMING: "it is arriving here: evacuate again once it has",
    VmState.MIGRATED: "it has migrated away already",
    VmState.OTHER: "it neither runs nor is paused",
    VmState.UNKNOWN: "its host does not answer",
}
"""Why a VM in another state stays."""
assert {*RUNNING_STATES, *NOT_MOVED} == set(VmState), "a state that nobody thought of"

"""What a fleet looks like at a glance: hosts, recent migrations, and what needs attention. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from vmtune.model.evacuation.evacuation import EvacuationState
from vmtune.model.host.contact import NEVER, Contact, HostState
from vmtune.model.migration.record import MigrationState, Trigger
from vmtune.model.plan.tuning_state import TuningState

LATELY = timedelta(hours=24)
"""For how long a migration that failed, or stopped its guest for too long, needs attention, and an
evacuation that left VMs; and how far back the timeline reaches."""


@dataclass(frozen=True, slots=True)
class Move:
    """A migration, in short.

    :param downtime_ms: None where it is not known; likewise *total_time_ms*.
    :param exceeded: the downtime was longer than its limit.
    :param intent_broken: it did not keep a goal of its intent.
    """

    id: UUID
    vm: UUID
    vm_name: str
    source: str
    destination: str
    trigger: Trigger
    state: MigrationState
    failure: str
    created_at: datetime
    active_at: datetime | None
    ended_at: datetime | None
    downtime_ms: int | None
    total_time_ms: int | None
    exceeded: bool
    intent_broken: bool = False


@dataclass(frozen=True, slots=True)
class HostLoad:
    """A host, and how many VMs were last seen on it."""

    name: str
    maintenance_since: datetime | None
    vms: int


@dataclass(frozen=True, slots=True)
class TunedVm:
    """A VM in a tuning state that needs attention."""

    vm: UUID
    name: str
    host: str
    since: datetime
    differing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The newest evacuation of a host, which does not go on by itself.

    :param left: VMs that it has not moved, as far as is known.
    """

    id: UUID
    host: str
    state: EvacuationState
    reason: str
    left: int
    since: datetime


STOPPED = (EvacuationState.PAUSED, EvacuationState.INCOMPLETE, EvacuationState.FAILED)
"""The states of such evacuations; one that was cancelled was meant to stop."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the database has of a fleet.

    :param moves: migrations that run, and those that began last, newest first.
    :param cut: there are more of the last 24 hours.
    :param tunings: numbers of VMs by tuning state.
    :param worst: some VMs of each state that needs attention, the newest first.
    :param stopped: evacuations that are paused or left VMs, the newest first.
    """

    hosts: tuple[HostLoad, ...]
    moves: tuple[Move, ...]
    cut: bool
    tunings: Mapping[TuningState, int]
    worst: Mapping[TuningState, tuple[TunedVm, ...]]
    stopped: tuple[Stopped, ...] = ()


class Concern(StrEnum):
    """What can need attention, the most urgent first."""

    POSTCOPY_PAUSED = "post-copy paused"
    HOST_UNREACHABLE = "host unreachable"
    UNKNOWN_END = "unknown end"
    EVACUATION_STOPPED = "evacuation stopped"
    FAILED = "failed"
    INTENT_BROKEN = "intent not kept"
    DOWNTIME_EXCEEDED = "downtime exceeded"
    DRIFTED = "drifted"
    UNREADABLE = "unreadable"
    PENDING_RESTART = "pending restart"


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that needs attention.

    :param id: of the migration, evacuation or VM; a host's name.
    :param name: of the VM or host.
    :param text: why, in short; may be empty.
    """

    id: str
    name: str
    text: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Attention:
    """What needs attention, by kind.

    :param count: how many; *subjects* has some of them.
    """

    concern: Concern
    count: int
    subjects: tuple[Subject, ...]


_TUNINGS = {
    Concern.DRIFTED: TuningState.DRIFTED,
    Concern.UNREADABLE: TuningState.UNKNOWN,
    Concern.PENDING_RESTART: TuningState.PENDING_RESTART,
}
NEEDS_A_LOOK = tuple(_TUNINGS.values())
"""The tuning states that need attention."""


def recent(moves: Iterable[Move], now: datetime) -> Iterator[Move]:
    """Of *moves* those that run or ended within :data:`LATELY`."""
    for move in moves:
        if move.ended_at is None or now - move.ended_at <= LATELY:
            yield move


def attention(
    standing: Standing, contacts: Mapping[str, Contact], now: datetime, shown: int
) -> list[Attention]:
    """What needs attention, the most urgent first; nothing where nothing does.

    :param contacts: the last contact with each host.
    :param shown: so many subjects of each kind at the most.
    """
    found: list[Attention] = []

    def add(concern: Concern, subjects: list[Subject], count: int | None = None) -> None:
        if number := len(subjects) if count is None else count:
            found.append(Attention(concern, number, tuple(subjects[:shown])))

    moves = list(recent(standing.moves, now))
    paused = MigrationState.POSTCOPY_PAUSED
    add(Concern.POSTCOPY_PAUSED, _of(moves, lambda move: move.state is paused))
    add(Concern.HOST_UNREACHABLE, list(_silent(standing.hosts, contacts)))
    unknown = MigrationState.UNKNOWN
    add(Concern.UNKNOWN_END, _of(standing.moves, lambda move: move.state is unknown))
    add(Concern.EVACUATION_STOPPED, list(_stopped(standing.stopped, now)))
    add(Concern.FAILED, _of(moves, lambda move: move.state is MigrationState.FAILED))
    add(Concern.INTENT_BROKEN, _of(moves, lambda move: move.intent_broken))
    add(Concern.DOWNTIME_EXCEEDED, _of(moves, lambda move: move.exceeded))
    for concern, state in _TUNINGS.items():
        vms = [
            Subject(str(vm.vm), vm.name, ", ".join(vm.differing), vm.since)
            for vm in standing.worst.get(state, ())
        ]
        add(concern, vms, standing.tunings.get(state, 0))
    return found


def _of(moves: Iterable[Move], holds: Callable[[Move], bool]) -> list[Subject]:
    return [
        Subject(str(move.id), move.vm_name, _why(move), move.ended_at or move.created_at)
        for move in moves
        if holds(move)
    ]


def _why(move: Move) -> str:
    way = f"{move.source} to {move.destination or 'an unknown host'}"
    if move.exceeded and move.downtime_ms is not None:
        return f"{way}, downtime {move.downtime_ms:,} ms"
    return f"{way}: {move.failure}" if move.failure else way


def _stopped(evacuations: Iterable[Stopped], now: datetime) -> Iterator[Subject]:
    """A paused one for as long as it is; others until they are old."""
    for each in evacuations:
        if each.state is EvacuationState.PAUSED or now - each.since <= LATELY:
            why = f": {each.reason}" if each.reason else ""
            vms = f"{each.left} VM{'' if each.left == 1 else 's'} left"
            yield Subject(str(each.id), each.host, f"{each.state}, {vms}{why}", each.since)


def _silent(hosts: Iterable[HostLoad], contacts: Mapping[str, Contact]) -> Iterator[Subject]:
    for host in hosts:
        contact = contacts.get(host.name, NEVER)
        if contact.state is HostState.UNREACHABLE:
            why = contact.problem.message if contact.problem else ""
            yield Subject(host.name, host.name, why, contact.silent_since)


class ActivityKind(StrEnum):
    """What takes its time."""

    MIGRATION = "migration"
    APPLICATION = "application"
    EVACUATION = "evacuation"
    CAMPAIGN = "campaign"
    STUDY = "study"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Activity:
    """Something that runs, or has ended.

    :param title: whom it concerns: a VM, a host, a campaign, a study, a scenario.
    :param detail: what is done, in short.
    :param state: in the words of its kind.
    :param failure: why it failed; empty where it did not.
    :param host: of an evacuation, which its page is named by; else empty.
    :param actor: who began it; empty if not known.
    """

    kind: ActivityKind
    id: UUID
    title: str
    detail: str
    state: str
    ended: bool
    failure: str
    created_at: datetime
    ended_at: datetime | None
    host: str = ""
    actor: str = ""


def in_order(activities: Iterable[Activity], limit: int) -> list[Activity]:
    """What runs first, then what ended, each the newest first; *limit* at the most."""
    newest = sorted(activities, key=lambda each: each.ended_at or each.created_at, reverse=True)
    return sorted(newest, key=lambda each: each.ended)[:limit]


class FoundKind(StrEnum):
    """What a search finds, in the order of its result."""

    VM = "vm"
    HOST = "host"
    PROFILE = "profile"
    MIGRATION = "migration"
    CAMPAIGN = "campaign"
    STUDY = "study"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Found:
    """One result of a search.

    :param id: by which its page is named.
    :param detail: what tells it from others of its name.
    """

    kind: FoundKind
    id: str
    title: str
    detail: str = field(default="")

"""VMs: as their hosts list them, and as just probed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field, StrictStr

from vmtune.api.schemas.assignments import AssignmentView
from vmtune.api.schemas.common import (
    Model,
    Page,
    ProblemItem,
    Rows,
    Texts,
    Values,
    WireValue,
    text_of,
)
from vmtune.api.schemas.contact import SilenceView
from vmtune.model.host.contact import Contact
from vmtune.model.host.facts import Reading, VmFacts, VmState
from vmtune.model.migration.open_migration import OpenMigration
from vmtune.model.migration.record import MigrationState
from vmtune.model.plan.tuning_state import Tuning, TuningState
from vmtune.model.profile import Explanation
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.services.hosts.hosts import SeenVm

_MIGRATION_STATE = (
    "The state of that migration. While it is `postcopy-paused`, the guest stops wherever it needs "
    "memory of the other host, whatever `state` says."
)


class TuningView(Model):
    """Tuning state of a VM as of the last application or verification."""

    state: TuningState
    profile: str
    revision: int
    application: UUID | None = Field(description="Null if only assigned, not applied.")
    differing: list[str] = Field(
        description="Tunables with another value than wanted and not pending a migration."
    )
    as_of: datetime
    since: datetime = Field(description="Since when it is in this state, as far as checks show.")


class Stands(Model):
    """Tuning state of a VM, as of the last check."""

    tuning_state: TuningState = Field(description="As of `tuning.as_of`; verify updates it.")
    tuning: TuningView | None = Field(
        description="Null if it never had an application or assignment."
    )


def stands_of(tuning: Tuning | None) -> dict[str, Any]:  # any: the fields of Stands
    """The fields of :class:`Stands`."""
    if tuning is None:
        return {"tuning_state": TuningState.UNTUNED, "tuning": None}
    return {"tuning_state": tuning.state, "tuning": TuningView.from_record(tuning)}


class VmView(Stands):
    """A VM and its current state."""

    uuid: UUID
    name: str
    host: str
    state: VmState = Field(description="Unknown if its host does not answer.")
    labels: dict[str, str]
    unreachable: SilenceView | None = Field(
        description="Why its host does not answer: the VM is as last seen then. Null if it does."
    )
    migration: UUID | None = Field(description="Its migration, while that has not ended.")
    migration_state: MigrationState | None = Field(description=_MIGRATION_STATE)

    @classmethod
    def of(
        cls,
        seen: SeenVm,
        tuning: Tuning | None,
        contact: Contact,
        migration: OpenMigration | None,
    ) -> VmView:
        silent = seen.summary.state is VmState.UNKNOWN
        return cls(
            unreachable=SilenceView.of(contact) if silent else None,
            migration=None if migration is None else migration.id,
            migration_state=None if migration is None else migration.state,
            uuid=seen.summary.uuid,
            name=seen.summary.name,
            state=seen.summary.state,
            host=seen.host,
            labels=dict(seen.labels),
            **stands_of(tuning),
        )


class VmPage(Page[VmView]):
    """VMs; those of hosts that do not answer as last seen."""

    problems: list[ProblemItem] = Field(description="Why other hosts did not answer.")
    tuning_counts: dict[TuningState, int] = Field(
        description="Number of VMs in each tuning state, over all pages and without the filter."
    )


class ReadingView(Model):
    """Current value of one tunable."""

    value: WireValue | None = Field(description="Null if unreadable or if parts differ.")
    text: str
    parts: Values = Field(description="Values by owner (an iothread, a disk) if there are several.")
    part_texts: Texts
    why_unknown: str = Field(description="Why there is no value; empty if there is one.")

    @classmethod
    def of(cls, tunable: str, reading: Reading, rows: Rows) -> ReadingView:
        known = reading.value is not None
        parts = dict(sorted(reading.parts.items()))
        return cls(
            value=reading.value,
            text="unknown" if reading.value is None else text_of(tunable, reading.value, rows),
            parts=parts,
            part_texts={owner: text_of(tunable, v, rows) for owner, v in parts.items()},
            why_unknown="" if known else reading.why_unknown or "it cannot be read",
        )


def readings_of(
    readings: Mapping[str, Reading],
    tunables: TunableRegistry,
    names: Iterable[str] | None = None,
) -> dict[str, ReadingView]:
    """Readings in the order of the table; *names* that were not read say so."""
    wanted = set(readings if names is None else names)
    return {
        name: ReadingView.of(name, readings.get(name, Reading(None)), tunables)
        for name in [*tunables, *(wanted - tunables.keys())]
        if name in wanted
    }


class VmDetail(Stands):
    """A VM and its QEMU, probed now. Null means unknown."""

    uuid: UUID
    name: str
    host: str
    state: VmState
    labels: dict[str, str]
    qemu_version: str
    machine: str
    kvm: bool
    memory_bytes: int
    vcpus: int
    persistent: bool
    migrating: bool
    migration: UUID | None = Field(
        description="Its migration, while that has not ended; null for one that vmtune does not "
        "know yet, too."
    )
    migration_state: MigrationState | None = Field(description=_MIGRATION_STATE)
    iothreads: list[str]
    virtio_disks: list[str]
    compression_methods: list[str]
    locked_memory_limit_bytes: int | None
    may_lock_memory: bool | None
    blocked_reasons: list[str] = Field(description="QEMU's reasons why it cannot be migrated.")
    pid: int | None
    readings: dict[str, ReadingView] = Field(description="Current values of QEMU, by tunable.")
    boot_readings: dict[str, ReadingView] = Field(
        description="Values of the persistent configuration for the next start."
    )

    @classmethod
    def of(
        cls,
        host: str,
        facts: VmFacts,
        labels: Mapping[str, str],
        tuning: Tuning | None,
        tunables: TunableRegistry,
        migration: OpenMigration | None,
    ) -> VmDetail:
        return cls.from_record(
            facts,
            migration=None if migration is None else migration.id,
            migration_state=None if migration is None else migration.state,
            **stands_of(tuning),
            host=host,
            labels=dict(labels),
            qemu_version=str(facts.qemu),
            compression_methods=sorted(facts.compression_methods),
            readings=readings_of(facts.readings, tunables),
            boot_readings=readings_of(facts.boot_readings, tunables),
        )


class EffectiveView(Model):
    """The current values of all tunables, unreadable ones included."""

    uuid: UUID
    name: str
    host: str
    readings: dict[str, ReadingView]


class LabelsReplace(Model):
    """All labels of a VM; omitted ones are removed."""

    labels: dict[StrictStr, StrictStr] = Field(examples=[{"tier": "db"}])


class LabelsView(Model):
    """A VM's labels."""

    uuid: UUID
    labels: dict[str, str]


class ExplanationView(Model):
    """The assignment of a VM and its other candidates."""

    uuid: UUID
    host: str
    winner: AssignmentView | None
    candidates: list[AssignmentView] = Field(description="Most specific first.")
    reason: str

    @classmethod
    def of(cls, uuid: UUID, host: str, explanation: Explanation) -> ExplanationView:
        winner = explanation.winner
        return cls(
            uuid=uuid,
            host=host,
            winner=AssignmentView.of(winner) if winner else None,
            candidates=[AssignmentView.of(a) for a in explanation.candidates],
            reason=explanation.reason,
        )

"""What must not be in the database, beyond what its own constraints refuse: each as a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Select, exists, func, literal, select, union_all
from sqlalchemy.orm import Session

from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.tune.kept import StudyState
from vmtune.model.evacuation.evacuation import EvacuationState, EvacuationVmState
from vmtune.model.migration.record import MigrationState, SamplesKept
from vmtune.model.plan.outcome import ApplicationState
from vmtune.storage.database import Database
from vmtune.storage.tables.access import AuditRow
from vmtune.storage.tables.campaigns import CampaignRow
from vmtune.storage.tables.cluster import OrderRow, ServiceRow
from vmtune.storage.tables.core import (
    ApplicationRow,
    HostRow,
    MigrationRow,
    OperationRow,
    ProfileRow,
    RevisionRow,
    RunRow,
    SampleChunkRow,
    TuningRow,
)
from vmtune.storage.tables.evacuations import EvacuationRow, EvacuationVmRow, SlotRow
from vmtune.storage.tables.retention import AuditCutRow
from vmtune.storage.tables.studies import StudyRow

_AnySelect = Select[*tuple[Any, ...]]  # any: of any columns

_open_migration = MigrationRow.state.in_([s.value for s in MigrationState if not s.ended])
_open_application = ApplicationRow.state.in_([s.value for s in ApplicationState if s.open])


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: rows that must not exist.

    :param says: the message, with the columns of such a row.
    """

    code: str
    rows: _AnySelect
    says: str


RULES = (
    Rule(
        "vm_held_for_nothing",
        select(OperationRow.kind, OperationRow.operation, OperationRow.vm).where(
            ~exists().where(MigrationRow.id == OperationRow.operation, _open_migration),
            ~exists().where(ApplicationRow.id == OperationRow.operation, _open_application),
        ),
        "{} {} has the VM {} to itself, and is not open",
    ),
    Rule(
        "vm_not_held",
        select(MigrationRow.id, MigrationRow.vm).where(
            _open_migration, ~exists().where(OperationRow.operation == MigrationRow.id)
        ),
        "migration {} is open and does not have the VM {} to itself",
    ),
    Rule(
        "vm_not_held",
        select(ApplicationRow.id, ApplicationRow.vm).where(
            _open_application, ~exists().where(OperationRow.operation == ApplicationRow.id)
        ),
        "application {} is open and does not have the VM {} to itself",
    ),
    Rule(
        "slot_for_nothing",
        select(SlotRow.migration).where(
            ~exists().where(MigrationRow.number == SlotRow.number, _open_migration)
        ),
        "migration {} has a place in the queue and is not open",
    ),
    Rule(
        "no_slot",
        select(MigrationRow.id).where(
            _open_migration, ~exists().where(SlotRow.number == MigrationRow.number)
        ),
        "migration {} is open and has no place in the queue",
    ),
    Rule(
        "unknown_migration",
        select(EvacuationVmRow.name, EvacuationVmRow.migration).where(
            EvacuationVmRow.migration.is_not(None),
            EvacuationVmRow.state != EvacuationVmState.REQUESTED.value,
            ~exists().where(MigrationRow.id == EvacuationVmRow.migration),
        ),
        "an evacuation moved {} by the migration {}, which there is not",
    ),
    Rule(
        "unknown_campaign",
        select(RunRow.id, RunRow.campaign).where(
            RunRow.campaign.is_not(None), ~exists().where(CampaignRow.id == RunRow.campaign)
        ),
        "run {} is of the campaign {}, which there is not",
    ),
    Rule(
        "unknown_study",
        select(RunRow.id, RunRow.study).where(
            RunRow.study.is_not(None), ~exists().where(StudyRow.id == RunRow.study)
        ),
        "run {} is of the study {}, which there is not",
    ),
    Rule(
        "unknown_application",
        select(TuningRow.vm, TuningRow.application).where(
            TuningRow.application.is_not(None),
            ~exists().where(ApplicationRow.id == TuningRow.application),
        ),
        "the tuning state of the VM {} names the application {}, which does not exist",
    ),
    Rule(
        "no_revision",
        select(ProfileRow.name, ProfileRow.current).where(
            ~exists().where(
                RevisionRow.profile == ProfileRow.name, RevisionRow.number == ProfileRow.current
            )
        ),
        "profile {} has no revision {}, which is its current one",
    ),
    Rule(
        "unknown_service",
        select(HostRow.name, HostRow.owner).where(
            HostRow.owner != "", ~exists().where(ServiceRow.name == HostRow.owner)
        ),
        "host {} is managed by the service {}, which does not exist",
    ),
    Rule(
        "samples_not_dropped",
        select(MigrationRow.id).where(
            MigrationRow.samples_kept == SamplesKept.DROPPED.value,
            exists().where(SampleChunkRow.migration == MigrationRow.number),
        ),
        "samples of the migration {} were dropped and are there",
    ),
    Rule(
        "entries_not_dropped",
        select(func.max(AuditRow.number)).where(
            AuditRow.number <= select(func.max(AuditCutRow.number)).scalar_subquery()
        ).having(func.count() > 0),
        "entries of the audit log up to {} were cut and still exist",
    ),
)  # fmt: skip

_WORK: dict[str, _AnySelect] = {
    "migration": select(MigrationRow.id).where(_open_migration),
    "evacuation": select(EvacuationRow.id).where(
        EvacuationRow.state == EvacuationState.RUNNING.value
    ),
    "campaign": select(CampaignRow.id).where(CampaignRow.state == CampaignState.RUNNING.value),
    "study": select(StudyRow.id).where(
        StudyRow.state.in_(
            [s.value for s in StudyState if not s.ended and s is not StudyState.PAUSED]
        )
    ),
    "run": select(RunRow.id).where(RunRow.state.in_([s.value for s in RunState if not s.ended])),
}
"""Records whose work is a job until they end."""


def broken(database: Database, most: int) -> list[tuple[str, str]]:
    """Violations: the rule's code and message; of each rule the first *most*."""
    with database.read() as session:
        return [
            (rule.code, rule.says.format(*row))
            for rule in RULES
            for row in session.execute(rule.rows.limit(most))
        ]


def unmatched(
    database: Database, unfinished: frozenset[str]
) -> tuple[list[tuple[str, UUID]], list[str]]:
    """Records that are under way and have no job, with their kind; and jobs without a record.

    :param unfinished: the ids of the jobs that are under way.
    """
    with database.read() as session:
        waiting = frozenset(session.scalars(select(OrderRow.job)))
        idle = [
            (kind, id)
            for kind, query in _WORK.items()
            for id in session.scalars(query)
            if str(id) not in unfinished and str(id) not in waiting
        ]
        strange = [job for job in sorted(unfinished) if not _is_known(session, job)]
    return idle, strange


def _is_known(session: Session, job: str) -> bool:
    try:
        id = UUID(job)
    except ValueError:
        return False
    found = union_all(
        *(
            select(literal(1)).where(row.id == id)
            for row in (MigrationRow, EvacuationRow, CampaignRow, StudyRow, RunRow)
        )
    )
    return session.execute(found).first() is not None

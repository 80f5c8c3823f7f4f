"""Applications: plans carried out, and verifications of what came of them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field, StrictBool, StrictInt, StrictStr

from vmtune.api.schemas.common import (
    Model,
    Page,
    ProblemItem,
    Rows,
    Shown,
    Texts,
    Values,
    problems_of,
    texts_of,
)
from vmtune.model.plan.outcome import Application, ApplicationState, Outcome, Status
from vmtune.services.tuning.verify import Verification


class ApplicationCreate(Model):
    """What to apply."""

    profile: StrictStr | None = Field(default=None, description="None for the assigned one.")
    revision: StrictInt | None = Field(default=None, ge=1, description="None for the current one.")
    best_effort: StrictBool = Field(
        default=False, description="Leave out what is refused, instead of putting everything back."
    )
    boot_only: StrictBool = Field(
        default=False,
        description="Change nothing but the persistent configuration, for the VM's next start; it "
        "need not run.",
    )


class OutcomeView(Model):
    """How one tunable ended."""

    tunable: str
    status: Status
    wanted: Shown | None
    seen: Shown | None = Field(description="What was read back; null where nothing could be.")
    reason: str

    @classmethod
    def of(cls, outcome: Outcome, rows: Rows) -> OutcomeView:
        return cls(
            tunable=outcome.tunable,
            status=outcome.status,
            wanted=Shown.or_none(outcome.tunable, outcome.wanted, rows),
            seen=Shown.or_none(outcome.tunable, outcome.seen, rows),
            reason=outcome.reason,
        )


class ApplicationView(Model):
    """A plan carried out on one VM."""

    id: UUID
    vm: UUID
    host: str
    profile: str
    revision: int
    values: Values = Field(description="What was wanted.")
    texts: Texts
    state: ApplicationState
    best_effort: bool
    outcomes: list[OutcomeView]
    problems: list[ProblemItem] = Field(description="Why it failed or is unknown.")
    created_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, record: Application, rows: Rows) -> ApplicationView:
        return cls(
            id=record.id,
            vm=record.vm,
            host=record.host,
            profile=record.profile,
            revision=record.revision,
            values=dict(record.wanted),
            texts=texts_of(record.wanted, rows),
            state=record.state,
            best_effort=record.best_effort,
            outcomes=[OutcomeView.of(outcome, rows) for outcome in record.outcomes],
            problems=problems_of(record.problems),
            created_at=record.created_at,
            ended_at=record.ended_at,
        )


class ApplicationPage(Page[ApplicationView]):
    """Applications, newest first."""


class VerificationView(Model):
    """What a VM runs with, held against what it is to have."""

    vm: UUID
    host: str
    profile: str
    revision: int
    application: UUID | None = Field(description="Null where only an assignment says it.")
    clean: bool = Field(description="All is effective, or waits for its migration or restart.")
    outcomes: list[OutcomeView]

    @classmethod
    def of(cls, found: Verification, rows: Rows) -> VerificationView:
        return cls(
            vm=found.vm,
            host=found.host,
            profile=found.profile,
            revision=found.revision,
            application=found.application,
            clean=found.clean,
            outcomes=[OutcomeView.of(outcome, rows) for outcome in found.outcomes],
        )

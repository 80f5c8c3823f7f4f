"""Applications of profiles, and their verification."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field, StrictBool, StrictInt, StrictStr

from vmtune.api.schemas.common import (
    Model,
    Page,
    ProblemItem,
    Rows,
    Texts,
    Values,
    ValueText,
    texts_of,
)
from vmtune.model.plan.outcome import Application, ApplicationState, Outcome, Status
from vmtune.services.tuning.verify import Verification


class ApplicationCreate(Model):
    """What to apply."""

    profile: StrictStr | None = Field(default=None, description="Null for the assigned profile.")
    revision: StrictInt | None = Field(
        default=None, ge=1, description="Null for the current revision."
    )
    best_effort: StrictBool = Field(
        default=False, description="Skip refused values instead of rolling everything back."
    )
    boot_only: StrictBool = Field(
        default=False,
        description="Change nothing but the persistent configuration, for the VM's next start; it "
        "need not run.",
    )


class OutcomeView(Model):
    """Outcome of one tunable."""

    tunable: str
    status: Status
    wanted: ValueText | None
    seen: ValueText | None = Field(description="The value that was read back; null if unreadable.")
    reason: str
    owner: str = Field(
        default="",
        description="Of an observed migration: who set the value that QEMU has, such as vmtune, "
        "libvirt, or the program that manages the VM; empty if unknown.",
    )

    @classmethod
    def of(cls, outcome: Outcome, rows: Rows) -> OutcomeView:
        return cls.from_record(
            outcome,
            wanted=ValueText.or_none(outcome.tunable, outcome.wanted, rows),
            seen=ValueText.or_none(outcome.tunable, outcome.seen, rows),
        )


class ApplicationView(Model):
    """One application of a profile to a VM."""

    id: UUID
    vm: UUID
    host: str
    profile: str
    revision: int
    values: Values = Field(description="The wanted values.")
    texts: Texts
    state: ApplicationState
    best_effort: bool
    outcomes: list[OutcomeView]
    problems: list[ProblemItem] = Field(description="Why it failed or is unknown.")
    created_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, record: Application, rows: Rows) -> ApplicationView:
        return cls.from_record(
            record,
            values=dict(record.wanted),
            texts=texts_of(record.wanted, rows),
            outcomes=[OutcomeView.of(outcome, rows) for outcome in record.outcomes],
        )


class ApplicationPage(Page[ApplicationView]):
    """Applications, newest first."""


class VerificationView(Model):
    """A comparison of a VM's current values to its profile."""

    vm: UUID
    host: str
    profile: str
    revision: int
    application: UUID | None = Field(description="Null if only assigned, not applied.")
    clean: bool = Field(description="All values are effective or pending.")
    outcomes: list[OutcomeView]

    @classmethod
    def of(cls, found: Verification, rows: Rows) -> VerificationView:
        return cls.from_record(
            found, outcomes=[OutcomeView.of(outcome, rows) for outcome in found.outcomes]
        )

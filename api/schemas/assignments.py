"""Which profile is for which VM."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, StrictStr

from vmtune.api.schemas.common import Model, Page
from vmtune.api.schemas.intents import IntentView, RawIntent
from vmtune.model.profile import Assignment, Target, describe


class AssignmentCreate(Model):
    """A profile for a VM, a label selector, a host, or the default."""

    target: Target
    key: StrictStr = Field(
        default="",
        description="The VM's UUID, a selector such as tier=db,zone=a, or the host's name; "
        "null for the default.",
    )
    profile: StrictStr
    intent: RawIntent | None = Field(
        default=None,
        description="What migrations of these VMs have to keep, unless they have an intent of "
        "their own; null for the profile's.",
    )


class AssignmentView(Model):
    """One assignment."""

    id: int
    target: Target
    key: str
    profile: str
    description: str
    created_at: datetime
    intent: IntentView | None = Field(
        description="What migrations of these VMs have to keep instead of the profile's intent; "
        "null for that."
    )

    @classmethod
    def of(cls, assignment: Assignment) -> AssignmentView:
        return cls.from_record(
            assignment,
            description=describe(assignment),
            intent=IntentView.of(assignment.intent),
        )


class AssignmentPage(Page[AssignmentView]):
    """Assignments, oldest first."""

"""Why a host does not answer."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from vmtune.api.schemas.common import Model
from vmtune.model.host.contact import Contact


class SilenceView(Model):
    """Why a host does not answer, and since when."""

    since: datetime
    answered_at: datetime | None = Field(
        description="When it answered last; null if not since the service started."
    )
    reason: str
    remedy: str

    @classmethod
    def of(cls, contact: Contact) -> SilenceView | None:
        """None where it answers, or was not asked."""
        if contact.silent_since is None or contact.problem is None:
            return None
        return cls(
            since=contact.silent_since,
            answered_at=contact.answered_at,
            reason=contact.problem.message,
            remedy=contact.problem.remedy,
        )

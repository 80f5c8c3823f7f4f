"""The event stream's messages."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from vmtune.api.schemas.common import Model
from vmtune.model.host.inventory import Event, EventTopic
from vmtune.services.events import Progress


class EventView(Model):
    """The ``data`` of one message; the message's ``event`` is its topic."""

    id: int | None = Field(description="Id to resume after; null for progress events.")
    at: datetime | None = Field(description="Null for progress events.")
    topic: EventTopic
    subject: str = Field(description="UUID, number or name of the changed object.")
    data: dict[str, Any]  # any JSON: what changed, by topic

    @classmethod
    def of(cls, message: Event | Progress) -> EventView:
        stored = message if isinstance(message, Event) else None
        return cls.from_record(
            message, id=stored.id if stored else None, at=stored.at if stored else None
        )

"""Schedules of campaigns."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from vmtune.api.schemas.common import Model
from vmtune.bench.model.trend.scheduled import Schedule, every_text


class ScheduleCreate(Model):
    """A campaign to be started again and again."""

    every: str = Field(
        max_length=60, description="Interval, 10 minutes to 90 days.", examples=["1 day"]
    )
    campaign: dict[str, Any] = Field(  # any JSON: the campaign file's
        description="The content of a campaign file as JSON, as for starting a campaign."
    )


class ScheduleView(Model):
    """A campaign that is started again and again."""

    name: str
    every: str
    every_s: int
    host: str = Field(description="The machine that runs it.")
    created_at: datetime
    next_at: datetime = Field(description="It starts then, or later: as soon as nothing waits.")
    last: UUID | None = Field(description="The campaign that it started last.")
    waits: str = Field(description="Why one that is due waits, or could not start; else empty.")

    @classmethod
    def of(cls, schedule: Schedule) -> ScheduleView:
        return cls.from_record(schedule, every=every_text(schedule.every_s))


class ScheduleList(Model):
    """All schedules, by name."""

    items: list[ScheduleView]

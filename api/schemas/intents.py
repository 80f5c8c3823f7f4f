"""Intents of migrations: what is to be kept, and what was."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from vmtune.api.schemas.common import Model
from vmtune.model.migration.intent import describe, dump_intent
from vmtune.model.migration.record import Migration
from vmtune.model.migration.stated_intent import goals_kept

RawIntent = Annotated[
    dict[str, Any],  # any JSON: judged by the domain, whose messages are better
    Field(
        description="Goals (`max_silence_ms`, `deadline_s`, `max_slowdown_percent`, "
        "`max_bandwidth_bytes_per_s`; a text may have a unit), `may` (throttle, postcopy, pause, "
        "compress, zero_copy), and `otherwise` (refuse, keep-trying, relax with the goals in "
        "`relax`). The VM is measured for some 17 s first.",
        examples=[
            {"max_silence_ms": "500ms", "deadline_s": "2min", "max_slowdown_percent": 20},
        ],
    ),
]


class GoalKeptView(Model):
    """A goal, compared with what happened; both in the goal's unit."""

    goal: str
    bound: int
    measured: float
    kept: bool


class StatedIntentView(Model):
    """The intent of a migration."""

    stated: dict[str, Any] = Field(description="The goals and means, in the units of their names.")
    text: str
    chosen: dict[str, str] = Field(description="Why each tunable was chosen.")
    pinned: list[str] = Field(
        description="Tunables that the user or the profile has set, and that stay as they are."
    )
    forecast: str = Field(description="Whether it was expected to be kept before the start.")
    goals: list[GoalKeptView] = Field(
        description="Silence and deadline, once the migration has completed; else empty."
    )

    @classmethod
    def of(cls, record: Migration) -> StatedIntentView | None:
        """The record's; None without one."""
        stated, totals = record.intent, record.totals
        if stated is None:
            return None
        found = (
            goals_kept(stated.intent, totals.total_time_ms, totals.downtime_ms) if totals else ()
        )
        return cls(
            stated=dump_intent(stated.intent),
            text=describe(stated.intent),
            chosen=dict(stated.chosen),
            pinned=list(stated.pinned),
            forecast=stated.forecast,
            goals=[GoalKeptView.from_record(each) for each in found],
        )

"""Intents of migrations: what is to be kept, and what was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from vmtune.api.schemas.common import Model, ValueText
from vmtune.model.migration.disks import caught_up_ms
from vmtune.model.migration.intent import Intent, Otherwise, describe, dump_intent
from vmtune.model.migration.record import Migration
from vmtune.model.migration.stated_intent import GoalKept, Happened, Measure, goals_kept
from vmtune.services.forecasts.intents import IntentPlan

RawIntent = Annotated[
    dict[str, Any],  # any JSON: judged by the domain, whose messages are better
    Field(
        description="Goals (`max_silence_ms`, `deadline_s`, `max_slowdown_percent`, "
        "`max_bandwidth_bytes_per_s`; a text may have a unit), `may` (throttle, postcopy, pause, "
        "compress, zero_copy), and `otherwise` (refuse, keep-trying, relax with the goals in "
        "`relax`). The VM is measured for some 20 s first.",
        examples=[
            {"max_silence_ms": "500ms", "deadline_s": "2min", "max_slowdown_percent": 20},
        ],
    ),
]


class IntentView(Model):
    """Goals and means."""

    stated: dict[str, Any] = Field(description="The goals and means, in the units of their names.")
    text: str = Field(description="The same in words.")

    @classmethod
    def of(cls, intent: Intent | None) -> IntentView | None:
        """None without one."""
        if intent is None:
            return None
        return cls(stated=dump_intent(intent), text=describe(intent))


class ChoiceView(Model):
    """A setting that was chosen for an intent."""

    tunable: str
    value: ValueText
    reason: str = Field(description="Why it was chosen, with the figures.")


class NearestIntentView(Model):
    """An intent that can be kept, by the forecast."""

    difference: str = Field(description="In what it differs: `a deadline of 95 s`.")
    intent: dict[str, Any] = Field(description="As a migration takes it.")


class IntentPlanView(IntentView):
    """What an intent comes to for one VM and destination."""

    choices: list[ChoiceView] = Field(description="The settings to begin with.")
    pinned: list[str] = Field(
        description="Tunables that the user or the profile has set, and that stay as they are."
    )
    forecast: str = Field(description="Whether it is expected to be kept, and why.")
    kept: bool | None = Field(description="The same; null if that cannot be said.")
    refused: bool = Field(description="A migration with it would not start.")
    nearest: list[NearestIntentView] = Field(
        description="Intents that can be kept instead, nearest first; empty if this one can."
    )
    runs: int | None = Field(
        description="Earlier migrations between the two hosts that say what the path carries; 0 if "
        "only the bandwidth limit does, null if nothing does."
    )
    history: list[UUID] = Field(description="These migrations, the newest first.")

    @classmethod
    def planned(cls, found: IntentPlan) -> IntentPlanView:
        """As the service has found it."""
        stated = found.stated
        rows = {item.tunable: item.row for item in found.planned.plan.items}
        wanted = {item.tunable: item.wanted for item in found.planned.plan.items}
        return cls(
            stated=dump_intent(stated.intent),
            text=describe(stated.intent),
            choices=[
                ChoiceView(
                    tunable=name, value=ValueText.of(name, wanted[name], rows), reason=reason
                )
                for name, reason in stated.chosen.items()
                if name in wanted
            ],
            pinned=list(stated.pinned),
            forecast=stated.forecast,
            kept=found.kept,
            refused=found.kept is False and stated.intent.otherwise is Otherwise.REFUSE,
            nearest=[
                NearestIntentView(difference=words, intent=dump_intent(other))
                for words, other in found.nearest
            ],
            runs=None if found.history is None else len(found.history),
            history=list(found.history or ()),
        )


class GoalKeptView(Model):
    """A goal, compared with what happened; both in the goal's unit."""

    goal: str
    bound: int
    measured: float | None
    kept: bool | None
    by: Measure = Field(
        description="By what it is known: `qemu` (QEMU's own times), `throttle` (the hardest "
        "throttle that was seen: the guest lost at most that share of its CPU time), `sent` (in "
        "the second in which most was sent), or `unknown`."
    )


class StatedIntentView(Model):
    """The intent of a migration."""

    stated: dict[str, Any] = Field(description="The goals and means, in the units of their names.")
    text: str
    chosen: dict[str, str] = Field(description="Why each tunable was chosen.")
    pinned: list[str] = Field(
        description="Tunables that the user or the profile has set, and that stay as they are."
    )
    forecast: str = Field(description="Whether it was expected to be kept before the start.")
    shadow: bool = Field(description="What would have been done is told, and nothing was done.")
    steered_until_ms: int | None = Field(
        description="Where steering ended before the migration did, such as with the connection to "
        "the source: when, in milliseconds since its start. Null where it was steered to its end."
    )
    goals: list[GoalKeptView] = Field(
        description="Each goal, once the migration has completed; else empty. What was not "
        "measured is null."
    )

    @classmethod
    def of(cls, record: Migration) -> StatedIntentView | None:
        """The record's; None without one."""
        stated = record.intent
        if stated is None:
            return None
        return cls(
            stated=dump_intent(stated.intent),
            text=describe(stated.intent),
            chosen=dict(stated.chosen),
            pinned=list(stated.pinned),
            forecast=stated.forecast,
            shadow=stated.shadow,
            steered_until_ms=stated.steered_until_ms,
            goals=[GoalKeptView.from_record(each) for each in _kept(record)],
        )


def _kept(record: Migration) -> Sequence[GoalKept]:
    """What the record has; of one by an earlier release what its totals say."""
    stated, totals = record.intent, record.totals
    if stated is None or totals is None or stated.kept:
        return () if stated is None else stated.kept
    total_ms = totals.total_time_ms + caught_up_ms(record.disks)
    return tuple(goals_kept(stated.intent, Happened(total_ms, totals.downtime_ms)))

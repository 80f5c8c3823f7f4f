"""What ran during a migration: convergence steps, and the dirty-ring reaper."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictStr

from vmtune.api.schemas.common import Model, Page, RawValue
from vmtune.model.migration.controller_record import (
    ReaperEnd,
    StepEffect,
)
from vmtune.model.migration.controls import Control, why_not
from vmtune.model.migration.downtime import limit_in_force_ms
from vmtune.model.migration.record import Migration
from vmtune.model.migration.step_text import spelled
from vmtune.model.migration.steps import Step, StepAction, dump_steps

StepTexts = list[str]
RawSteps = Annotated[
    list[dict[str, Any]],  # any JSON: judged by the domain, whose messages are better
    Field(
        description="Convergence steps in order. `when` has "
        "`after_iterations`, `after_s`, `later_s` (after the step before), or `stalled_s` with "
        "`shrink_percent` and `near_percent` (of the least); `then` has `set` "
        "with values, or `do`: pause, postcopy or abort.",
        examples=[
            [{"when": {"after_iterations": 4}, "then": {"set": {"downtime_limit_ms": 500}}}],
        ],
    ),
]

Tenths = Annotated[float, AfterValidator(lambda value: round(value, 1))]


class StepView(Model):
    """A convergence step: an action for a migration that does not converge."""

    when: dict[StrictStr, int]
    then: dict[StrictStr, Any]  # any JSON: values by name, or a word

    @classmethod
    def all_of(cls, steps: Sequence[Step]) -> list[StepView]:
        return [cls.model_validate(step) for step in dump_steps(steps)]


def step_texts(steps: Sequence[Step]) -> StepTexts:
    """Each step as people write and read it."""
    return [spelled(step) for step in steps]


class StepRecordView(Model):
    """An executed convergence step, a change that a user requested, or one by steering."""

    number: int | None = Field(
        description="Position in the list; null for a user's change and for steering."
    )
    at_ms: int = Field(description="Time since the migration's start.")
    iteration: int
    action: str
    reason: str = Field(description="Why it was executed, with the figures.")
    effect: StepEffect
    detail: str = Field(description="QEMU's error if it was refused, else further details.")
    forecast: str = Field(description="What was expected with it; empty if that was not known.")
    steering: bool = Field(description="It was done to keep the migration's intent.")
    values: dict[str, Any] = Field(  # any JSON: a tunable's value
        description="What it sets, by tunable, in QEMU's units; empty if it does something else."
    )
    of_copies: bool = Field(description="The values are of the copies of disks.")


class ReaperView(Model):
    """What the dirty-ring reaper did during a migration."""

    policy: str
    ring_entries: int
    end: ReaperEnd
    reason: str = Field(description="The error; empty if it ended with the migration.")
    throughout: bool = Field(description="It ran from before the migration to its end.")
    round_count: int
    rounds_before: int = Field(description="Rounds that ended before the migration started.")
    filled_rounds: int = Field(description="Rounds in which some ring must have been full.")
    skipped_rounds: int = Field(description="Rounds skipped because another client was measuring.")
    interruptions: int = Field(description="Number of interruptions after which it resumed.")
    ring_full_exits: int | None = Field(description="Null if not counted.")
    fullest: float = Field(description="Highest fill ratio of a ring.")
    shortest_interval_ms: int
    mean_interval_ms: Tenths
    longest_interval_ms: int
    mean_cost_ms: Tenths = Field(description="Time of a round beyond its interval.")


class RoundView(Model):
    """One round of the reaper, which empties all dirty rings."""

    at_ms: int = Field(description="Time since the migration's start; negative before it.")
    interval_ms: int = Field(description="The interval of the policy.")
    elapsed_ms: float = Field(description="Time since the end of the previous round.")
    cost_ms: float = Field(description="The part of it beyond the interval.")
    fills: list[float] = Field(
        description="Collected pages of each vCPU's ring, relative to its size."
    )


class RoundPage(Page[RoundView]):
    """Rounds of one migration's reaper, oldest first."""


class RequestedAction(StrEnum):
    """What a running migration can be told to do at once."""

    POSTCOPY = StepAction.POSTCOPY.value
    PAUSE = StepAction.PAUSE.value


class MigrationChange(Model):
    """Changes to a running migration."""

    values: dict[StrictStr, RawValue] = Field(
        default={},
        description="Values of tunables that can change during a migration (`running`).",
        examples=[{"downtime_limit_ms": 500}],
    )
    do: RequestedAction | None = Field(
        default=None,
        description="Instead of values: switch to post-copy, or pause the guest until the "
        "migration ends.",
    )


class ControlView(Model):
    """A way to help a running migration to end."""

    name: Control
    why_not: str = Field(description="Why it cannot be used now; empty if it can.")
    present_ms: int | None = Field(
        description="Of `downtime_limit`: the limit in force, in ms. Null if it is not known, and "
        "of all others."
    )

    @classmethod
    def all_of(cls, record: Migration) -> list[ControlView]:
        """Of a migration that has not ended; else none. Those of disks where it copies some."""
        if record.state.ended:
            return []
        return [
            cls(
                name=control,
                why_not=why_not(control, record),
                present_ms=(
                    limit_in_force_ms(record) if control is Control.DOWNTIME_LIMIT else None
                ),
            )
            for control in Control
            if record.disks or control is not Control.DISK_WRITES
        ]


class MigrationRecovery(Model):
    """How a migration that is paused in post-copy is recovered."""

    address: StrictStr = Field(
        default="",
        description="Address of the destination to connect to, instead of the usual one. A "
        "connection that QEMU has not given up yet is given up then.",
        examples=["192.0.2.7"],
    )

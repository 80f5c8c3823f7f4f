"""What ran beside a migration: convergence steps, and the dirty-ring reaper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field, StrictStr

from vmtune.api.schemas.common import Model, Page, RawValue
from vmtune.model.migration.controller_record import (
    ReaperEnd,
    ReaperReport,
    ReaperRound,
    StepEffect,
    StepRecord,
)
from vmtune.model.migration.step_text import spelled
from vmtune.model.migration.steps import Step, dump_steps

StepTexts = list[str]
RawSteps = Annotated[
    list[dict[str, Any]],  # any JSON: judged by the domain, whose messages are better
    Field(
        description="Convergence steps, in the order in which they are taken. `when` has "
        "`after_iterations`, `after_s`, or `stalled_s` with `shrink_percent`; `then` has `set` "
        "with values, or `do`: pause, postcopy or abort.",
        examples=[
            [{"when": {"after_iterations": 4}, "then": {"set": {"downtime_limit_ms": 500}}}],
        ],
    ),
]


class StepView(Model):
    """A convergence step: what is done when a migration does not come to an end."""

    when: dict[StrictStr, int]
    then: dict[StrictStr, Any]  # any JSON: values by name, or a word

    @classmethod
    def all_of(cls, steps: Sequence[Step]) -> list[StepView]:
        return [cls.model_validate(step) for step in dump_steps(steps)]


def step_texts(steps: Sequence[Step]) -> StepTexts:
    """Each step as people write and read it."""
    return [spelled(step) for step in steps]


class StepRecordView(Model):
    """A convergence step that came due, or a change that a user asked for meanwhile."""

    number: int | None = Field(description="Its place in the list; null for a user's change.")
    at_ms: int = Field(description="Since the migration was started.")
    iteration: int
    action: str
    reason: str = Field(description="Why it was due, with the figures.")
    effect: StepEffect
    detail: str = Field(description="QEMU's words where it was refused, what is known otherwise.")

    @classmethod
    def of(cls, record: StepRecord) -> StepRecordView:
        return cls(**asdict(record))


class ReaperView(Model):
    """What the dirty-ring reaper did during a migration."""

    policy: str
    ring_entries: int
    end: ReaperEnd
    reason: str = Field(description="What went wrong; empty where it ended with the migration.")
    throughout: bool = Field(description="It ran from before the migration to its end.")
    round_count: int
    rounds_before: int = Field(description="That had ended when the migration was started.")
    filled_rounds: int = Field(description="In which some ring must have been full.")
    skipped_rounds: int = Field(description="Left out because somebody else was measuring.")
    interruptions: int = Field(description="How often it could not go on, and then did.")
    ring_full_exits: int | None = Field(description="Null where nobody counted them.")
    fullest: float = Field(description="The fill ratio of the fullest ring that was found.")
    shortest_interval_ms: int
    mean_interval_ms: float
    longest_interval_ms: int
    mean_cost_ms: float = Field(description="What a round took beyond its interval.")

    @classmethod
    def of(cls, report: ReaperReport | None) -> ReaperView | None:
        if report is None:
            return None
        return cls(
            policy=report.policy,
            ring_entries=report.ring_entries,
            end=report.end,
            reason=report.reason,
            throughout=report.throughout,
            round_count=report.round_count,
            rounds_before=report.rounds_before,
            filled_rounds=report.filled_rounds,
            skipped_rounds=report.skipped_rounds,
            interruptions=report.interruptions,
            ring_full_exits=report.ring_full_exits,
            fullest=report.fullest,
            shortest_interval_ms=report.shortest_interval_ms,
            mean_interval_ms=round(report.mean_interval_ms, 1),
            longest_interval_ms=report.longest_interval_ms,
            mean_cost_ms=round(report.mean_cost_ms, 1),
        )


class RoundView(Model):
    """One emptying of all dirty rings."""

    at_ms: int = Field(description="Since the migration was started; negative before it.")
    interval_ms: int = Field(description="The wait that the policy had asked for.")
    elapsed_ms: float = Field(description="Since the end of the round before.")
    cost_ms: float = Field(description="The part of it that was not the wait.")
    fills: list[float] = Field(description="Pages collected from each vCPU's ring by its size.")

    @classmethod
    def of(cls, each: ReaperRound) -> RoundView:
        return cls(**{**asdict(each), "fills": list(each.fills)})


class RoundPage(Page[RoundView]):
    """Rounds of one migration's reaper, oldest first."""


class MigrationChange(Model):
    """What is to be set while a migration runs."""

    values: Annotated[
        dict[StrictStr, RawValue],
        Field(
            description="Values of tunables that QEMU heeds while it migrates (`running`).",
            examples=[{"downtime_limit_ms": 500}],
        ),
    ]

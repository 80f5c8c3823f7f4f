"""Compares what a VM runs with to what is wanted: for a verification, or a drift scan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from vmtune.model.host.inventory import EventTopic
from vmtune.model.plan.outcome import Application, Outcome, Status
from vmtune.model.plan.readback import outcomes_of
from vmtune.model.plan.tuning_state import TuningState
from vmtune.services.events import EventBus
from vmtune.services.tuning.planning import Planned

WAITS = (Status.EFFECTIVE, Status.PENDING_MIGRATION, Status.PENDING_RESTART)
"""As wanted, or it will be."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a VM runs with, compared to what is wanted.
    :param application: the current application; None if only an assignment defines what is wanted.
    """

    vm: UUID
    host: str
    profile: str
    revision: int
    application: UUID | None
    outcomes: tuple[Outcome, ...]

    @property
    def clean(self) -> bool:
        """Every tunable is effective or waits for its migration or restart."""
        return all(outcome.status in WAITS for outcome in self.outcomes)


def verification(planned: Planned, standing: Application | None) -> Verification:
    """The VM's tuning state, from the plan's probes.
    :param standing: its current application, whose revision was planned; None if the assigned
        profile was.
    """
    plan, facts = planned.plan, planned.facts
    outcomes = outcomes_of(plan, facts.readings, facts.boot_readings)
    if standing is not None:
        # An application may have been of the boot route's values alone.
        outcomes = [o for o in outcomes if o.tunable in standing.wanted]
    else:
        outcomes = [_not_applied(outcome) for outcome in outcomes]
    application = standing.id if standing is not None else None
    return Verification(
        plan.vm, plan.host, plan.profile, plan.revision, application, tuple(outcomes)
    )


def _not_applied(outcome: Outcome) -> Outcome:
    """An outcome where nothing was applied: a difference from the assigned profile is not an
    overwrite."""
    if outcome.status is not Status.OVERWRITTEN:
        return outcome
    reason = "the assigned profile has not been applied to this VM"
    return replace(outcome, status=Status.NOT_APPLIED, reason=reason)


async def publish_tuning(bus: EventBus, vm: UUID, state: TuningState) -> None:
    """Publish that a VM's tuning state has changed."""
    await bus.publish(EventTopic.VM, vm, {"change": "tuning", "tuning_state": state})

"""The limits of a host that an application raises, and restoring all that it has set."""

from __future__ import annotations

from collections.abc import Iterable

from vmtune.engine.setting import restore
from vmtune.engine.undo import NOT_PUT_BACK
from vmtune.errors import Problem, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.limits import SYSCTLS
from vmtune.model.plan.changes import OF_HOST, Change
from vmtune.model.plan.outcome import Application, Outcome, Status
from vmtune.model.plan.plan import Plan
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Route
from vmtune.services.hosts.limits import HostLimits, LimitState, as_problem


def limits_wanted(plan: Plan) -> dict[str, int]:
    """The limits of the host that the plan raises."""
    differing = {item.tunable for item in plan.items if item.differs}
    return {
        change.tunable: int(change.value)
        for change in plan.changes(Route.HOST)
        if change.tunable in SYSCTLS and change.tunable in differing
    }


def limits_before(plan: Plan) -> list[Change]:
    """Their present values."""
    wanted = limits_wanted(plan)
    return [
        Change(item.tunable, item.current.value)
        for item in plan.items
        if item.tunable in wanted and item.current.value is not None
    ]


def asker(record: Application) -> str:
    """The owner name of an application's requests for host limits."""
    return f"application {record.id}"


async def restore_all(
    driver: Driver, record: Application, limits: HostLimits | None
) -> list[Outcome]:
    """Restore the journal, on the host too, and return the outcomes.
    :raise VmtuneError: the first value that could not be restored, after all were tried.
    """
    on_host: list[Outcome] = []
    failed: VmtuneError | None = None
    before = [change for change in record.journal if change.tunable in OF_HOST]
    if before and limits is not None:
        try:
            await limits.release(asker(record))
            on_host = _come_back(before, await limits.state(record.host))
        except VmtuneError as error:
            failed = error
    outcomes = await restore(driver, record.vm, record.journal)
    if failed is not None:
        raise failed
    return [*outcomes, *on_host]


def not_put_back(outcomes: Iterable[Outcome]) -> tuple[Problem, ...]:
    """What a restore has left, each with the value that it had before."""
    return tuple(
        Problem(
            f"values.{one.tunable}",
            NOT_PUT_BACK,
            f"it was {_rendered(one)} before: {one.reason or 'something else is set'}",
            "revert it again, or set it by hand",
        )
        for one in outcomes
        if one.status is not Status.REVERTED
    )


def _rendered(outcome: Outcome) -> str:
    row = BUILT_IN.get(outcome.tunable)
    return str(outcome.wanted) if row is None else row.render(outcome.wanted)


def _come_back(journal: Iterable[Change], limits: Iterable[LimitState]) -> list[Outcome]:
    """Outcomes of the host's limits after their release: others may still request them."""
    states = {state.tunable: state for state in limits}
    outcomes: list[Outcome] = []
    for change in journal:
        state = states[change.tunable]
        reason = "" if state.value == change.value else as_problem(state).message
        outcomes.append(Outcome(change.tunable, Status.REVERTED, change.value, state.value, reason))
    return outcomes

"""What an application would set, found before its record is begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vmtune.errors import Forbidden, InvalidInput
from vmtune.model.plan.changes import Change, undo
from vmtune.model.plan.outcome import Application
from vmtune.model.plan.plan import refuse
from vmtune.model.plan.readback import boot_differs
from vmtune.model.tunables.tunable import Route
from vmtune.services.tuning.planning import Planned
from vmtune.services.tuning.setting import limits_before, limits_wanted
from vmtune.storage import Store


@dataclass(frozen=True, slots=True)
class Work:
    """What an application sets.

    :param changes: of what runs.
    :param boot: of the persistent configuration.
    """

    planned: Planned
    changes: Sequence[Change]
    boot: Sequence[Change]
    best_effort: bool

    @property
    def ends_with_machine(self) -> bool:
        """All that it sets is gone when this machine loses its power."""
        limits = limits_wanted(self.planned.plan)
        return self.planned.on_this_machine and not self.boot and not limits

    def begin(self, store: Store) -> Application:
        """Store its record, with the prior values.

        :raise OperationInProgress: another application or migration of the VM is open.
        """
        plan, facts = self.planned.plan, self.planned.facts
        journal = undo(self.changes, facts.readings) + undo(self.boot, facts.boot_readings)
        journal += limits_before(plan)
        return store.applications.begin(
            vm=plan.vm,
            host=plan.host,
            profile=plan.profile,
            revision=plan.revision,
            wanted=self.planned.desired.values,
            best_effort=self.best_effort,
            journal=tuple(journal),
            ends_with_machine=self.ends_with_machine,
        )


def work_of(planned: Planned, best_effort: bool, boot_only: bool, may_raise_limits: bool) -> Work:
    """What a plan comes to, applied.

    :raise InvalidInput: there is nothing to apply.
    :raise Forbidden: it raises limits of the host, and may not.
    :raise Blocked: it has blockers; with *best_effort* only those of the VM itself.
    """
    if not planned.desired.profile:
        raise InvalidInput(
            "no profile was named and none is assigned to this VM",
            field="profile",
            code="no_profile",
            remedy="name a profile, or assign one",
        )
    if boot_only:
        planned = _for_next_start(planned)
    plan = planned.plan
    raised = limits_wanted(plan)
    if raised and not may_raise_limits:
        raise Forbidden(
            f"the profile raises {', '.join(raised)} of the host, which all its VMs share",
            field="profile",
            code="out_of_reach",
            remedy="use a token that is not restricted by labels",
        )
    refuse([f for f in plan.blockers() if not (best_effort and f.tunable)])
    boot = [c for c in plan.changes(Route.BOOT) if boot_differs(c, planned.facts)]
    return Work(planned, plan.changes_now(), boot, best_effort)


def _for_next_start(planned: Planned) -> Planned:
    """*planned* with only what waits for the VM's next start.

    :raise InvalidInput: there is none.
    """
    plan = planned.plan
    items = tuple(item for item in plan.items if item.route is Route.BOOT)
    names = {item.tunable for item in items}
    if not names:
        raise InvalidInput(
            f"profile {plan.profile} has no value that takes effect at a VM's start",
            field="boot_only",
            code="nothing_for_the_next_start",
            remedy="apply it without boot_only",
        )
    findings = tuple(f for f in plan.findings if f.tunable in names)
    values = {name: value for name, value in planned.desired.values.items() if name in names}
    return replace(
        planned,
        plan=replace(plan, items=items, findings=findings),
        desired=replace(planned.desired, values=values),
    )

"""Makes an intent a plan: measures the VM, judges, chooses settings, refuses beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from vmtune.errors import Blocked, InvalidInput, Problem
from vmtune.intent.bounds import bandwidth_to_set
from vmtune.intent.choosing import Chosen, choose
from vmtune.intent.feasible import broken_by, difference, nearest
from vmtune.intent.offer import Offer
from vmtune.intent.pinned import BANDWIDTH, LIMIT, contradiction
from vmtune.model.host.facts import VmFacts
from vmtune.model.migration.intent import (
    Goal,
    Intent,
    Means,
    Otherwise,
    describe,
    parse_intent,
)
from vmtune.model.migration.stated_intent import StatedIntent
from vmtune.model.tunables.rows.reaper import ALONE_AT_THE_RINGS, REAPERS
from vmtune.services.forecasts.forecasts import ForecastService
from vmtune.services.forecasts.free_cores import free_cores, look
from vmtune.services.hosts.hosts import HostService
from vmtune.services.tuning.planning import Planned, PlanService
from vmtune.services.tuning.profiles import RawSteps

_RINGS_UNSAFE = {
    "ring_without_reaper",
    "ring_fills_between_rounds",
    "ring_must_not_fill",
    "ring_reset_unknown",
}
_HELD_BY = {Goal.SILENCE: LIMIT, Goal.BANDWIDTH: BANDWIDTH}
"""What holds a goal; where it cannot be set, nothing does."""
_OFFERED = 3
"""How many of the nearest intents a refusal names."""


@dataclass(frozen=True, slots=True)
class IntentPlan:
    """What to migrate with.

    :param values: the user's, and the chosen ones.
    :param planned: the plan for them.
    :param kept: whether it is expected to be kept; None where that cannot be said.
    :param nearest: intents that can be kept, where this one is not expected to be, each with what
        differs; the nearest first.
    :param history: the earlier migrations that say what the path carries, the newest first; None
        where it is not known.
    """

    values: Mapping[str, object]
    stated: StatedIntent
    planned: Planned
    kept: bool | None
    nearest: tuple[tuple[str, Intent], ...]
    history: tuple[UUID, ...] | None


class IntentService:
    """Chooses settings for intents. Changes nothing."""

    def __init__(self, forecasts: ForecastService, plans: PlanService, hosts: HostService) -> None:
        self.forecasts = forecasts
        self._plans = plans
        self._hosts = hosts

    async def plan(
        self,
        raw: object,
        vm: UUID,
        destination: str | None,
        profile: str | None = None,
        revision: int | None = None,
        values: Mapping[str, object] | None = None,
        steps: RawSteps | None = None,
        without_profile: bool = False,
    ) -> IntentPlan:
        """What an intent as JSON comes to; as :meth:`consider`.

        :raise InvalidInput: it cannot be accepted, or is for no migration, or *without_profile*.
        """
        intent = parse_intent(raw)
        if destination is None or without_profile:
            missing = "destination" if destination is None else "without_profile"
            raise InvalidInput(
                "an intent is for the migration of a VM with its profile",
                field=missing,
                code="needs_migration",
                remedy="name a destination, or leave out intent"
                if destination is None
                else "leave out without_profile, or intent",
            )
        return await self.consider(intent, vm, destination, profile, revision, values, steps)

    async def choose(
        self,
        intent: Intent,
        vm: UUID,
        destination: str,
        profile: str | None = None,
        revision: int | None = None,
        values: Mapping[str, object] | None = None,
        steps: RawSteps | None = None,
        planned: Planned | None = None,
    ) -> IntentPlan:
        """The settings for *intent*, as :meth:`consider` finds them.

        :raise Blocked: it cannot be kept, and is to be refused then; with the nearest that can.
        """
        found = await self.consider(
            intent, vm, destination, profile, revision, values, steps, planned
        )
        if intent.otherwise is Otherwise.REFUSE and found.kept is False:
            raise _refusal(found)
        return found

    async def consider(
        self,
        intent: Intent,
        vm: UUID,
        destination: str,
        profile: str | None = None,
        revision: int | None = None,
        values: Mapping[str, object] | None = None,
        steps: RawSteps | None = None,
        planned: Planned | None = None,
    ) -> IntentPlan:
        """The settings for *intent*, and whether it is expected to be kept. Measures the VM for
        some 20 s where that was not done lately.

        :param values: the user's; they win over chosen ones, as do the profile's.
        :param planned: the plan without the choices, where it was made just now.
        :raise VmtuneError: as :meth:`ForecastService.forecast`.
        """
        given = dict(values or {})

        async def plan_with(more: Mapping[str, object]) -> Planned:
            return await self._plans.plan(
                vm, profile, revision, destination, values={**given, **more}, steps=steps
            )

        if planned is None:
            planned = await plan_with({})
        limit = bandwidth_to_set(intent)
        both = (planned.driver, await self._hosts.driver(destination))
        before = await look(both)
        basis = await self.forecasts.basis(planned, destination, limit)
        desired = planned.desired
        unset = {name: None for name, value in given.items() if value is None}
        pinned = {**unset, **desired.values}
        broken = contradiction(intent, desired.values, desired.steps)
        offer = _offer(planned.facts, await free_cores(both, before))
        offer = replace(offer, copies=len(planned.plan.disks))
        if not _may_fill_rings(planned):
            offer = replace(offer, dirty_ring_entries=0)

        async def attempt(offer: Offer) -> tuple[Chosen, Planned, set[str | None]]:
            chosen = choose(intent, basis, offer, pinned, broken)
            added = {choice.tunable: choice.value for choice in chosen.choices}
            tried = await plan_with(added)
            return chosen, tried, _blocked(tried)

        chosen, tried, blocked = await attempt(offer)
        while (usable := offer.without(blocked)) != offer:  # what was expected of it counts no more
            offer = usable
            chosen, tried, blocked = await attempt(offer)
        kept = [choice for choice in chosen.choices if choice.tunable not in blocked]
        unheld = _unheld(intent, chosen, tried)
        if unheld is not None:
            chosen = replace(chosen, judgement=broken_by(unheld))
        stated = StatedIntent(
            intent,
            {choice.tunable: choice.reason for choice in kept},
            chosen.pinned,
            _promise(chosen),
            () if (probe := self.forecasts.measured(vm)) is None else probe.curve().points,
            beyond=None if basis is None else basis.beyond,
        )
        settings = {choice.tunable: choice.value for choice in kept}
        if len(kept) < len(chosen.choices):
            tried = await plan_with(settings)
        promised = None if chosen.judgement is None else chosen.judgement.kept
        near: tuple[Intent, ...] = ()
        if chosen.basis is not None and promised is False and unheld is None:
            near = nearest(intent, chosen.basis)
            if any(Means.POSTCOPY in {*other.may} - {*intent.may} for other in near):
                if "postcopy" in _blocked(await plan_with({"postcopy": True})):
                    means = chosen.basis.means - {Means.POSTCOPY}
                    near = nearest(intent, replace(chosen.basis, means=means))
        return IntentPlan(
            {**given, **settings},
            stated,
            tried,
            promised,
            tuple((difference(intent, other), other) for other in near[:_OFFERED]),
            None if basis is None else basis.history,
        )


def _blocked(planned: Planned) -> set[str | None]:
    """The tunables that blockers are of; None for one of something else."""
    return {finding.tunable for finding in planned.plan.blockers()}


def _unheld(intent: Intent, chosen: Chosen, tried: Planned) -> str | None:
    """Why what holds a goal cannot be set; None where all can."""
    names = {choice.tunable for choice in chosen.choices}
    for finding in tried.plan.blockers():
        for goal, name in _HELD_BY.items():
            if finding.tunable == name in names and intent.goal(goal) is not None:
                return f"{name} cannot be set: {finding.message}"
    return None


def _may_fill_rings(planned: Planned) -> bool:
    """Whether the dirty limit can act, which does so by full rings: nothing else empties them, and
    none can end the guest."""
    values = planned.desired.values
    reaps = any(values.get(n, ALONE_AT_THE_RINGS[n]) != ALONE_AT_THE_RINGS[n] for n in REAPERS)
    return not reaps and not any(f.code in _RINGS_UNSAFE for f in planned.plan.findings)


def _offer(facts: VmFacts, free_cores: float | None) -> Offer:
    """By the source's capabilities alone: what the destination lacks, or QEMU does not take
    together, is a blocker of the plan."""
    limits = facts.kvm and "dirty-limit" in facts.capabilities
    return Offer(
        multifd="multifd" in facts.capabilities,
        zstd="zstd" in facts.compression_methods,
        zero_copy="zero-copy-send" in facts.capabilities,
        postcopy="postcopy-ram" in facts.capabilities,
        postcopy_with_multifd=True,
        free_cores=free_cores,
        dirty_ring_entries=(facts.dirty_ring_size_entries or 0) if limits else 0,
    )


def _refusal(found: IntentPlan) -> Blocked:
    offers = [words for words, _ in found.nearest]
    helps = "it could be kept with " + ", or with ".join(offers) if offers else ""
    message = f"{describe(found.stated.intent)}: {found.stated.forecast}"
    remedy = "; ".join(filter(None, (helps, "or set otherwise to keep-trying")))
    return Blocked(
        "the intent cannot be kept",
        problems=[Problem("intent", "intent_infeasible", message, remedy)],
    )


def _promise(chosen: Chosen) -> str:
    found = chosen.judgement
    if found is None:
        return "what the path carries is not known, so nothing is promised"
    words = {True: "will be kept", None: "may be kept", False: "is not expected to be kept"}
    return f"{words[found.kept]}: {found.reason}"

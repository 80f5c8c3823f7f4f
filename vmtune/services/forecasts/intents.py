"""Makes an intent a plan: measures the VM, judges, chooses settings, refuses beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from vmtune.errors import Blocked, Problem
from vmtune.intent.choosing import Chosen, Offer, choose
from vmtune.intent.feasible import Basis, difference, nearest
from vmtune.model.host.facts import VmFacts
from vmtune.model.migration.intent import Intent, Otherwise, describe
from vmtune.model.migration.stated_intent import StatedIntent
from vmtune.services.forecasts.forecasts import ForecastService
from vmtune.services.tuning.planning import PlanService
from vmtune.services.tuning.profiles import RawSteps

_OFFERED = 3
"""How many of the nearest intents a refusal names."""


@dataclass(frozen=True, slots=True)
class IntentPlan:
    """What to migrate with.

    :param values: the user's, and the chosen ones.
    """

    values: Mapping[str, object]
    stated: StatedIntent


class IntentService:
    """Chooses settings for intents. Changes nothing."""

    def __init__(self, forecasts: ForecastService, plans: PlanService) -> None:
        self.forecasts = forecasts
        self._plans = plans

    async def choose(
        self,
        intent: Intent,
        vm: UUID,
        destination: str,
        profile: str | None = None,
        revision: int | None = None,
        values: Mapping[str, object] | None = None,
        steps: RawSteps | None = None,
    ) -> IntentPlan:
        """The settings for *intent*. Measures the VM for some 17 s where that was not done lately.

        :param values: the user's; they win over chosen ones, as do the profile's.
        :raise Blocked: it cannot be kept, and is to be refused then; with the nearest that can.
        :raise VmtuneError: as :meth:`ForecastService.forecast`.
        """
        given = dict(values or {})
        planned = await self._plans.plan(
            vm, profile, revision, destination, values=given, steps=steps
        )
        limit = intent.max_bandwidth_bytes_per_s
        basis = await self.forecasts.basis(planned, destination, limit)
        pinned = frozenset(given) | frozenset(planned.desired.values)
        chosen = choose(intent, basis, _offer(planned.facts), pinned)
        if intent.otherwise is Otherwise.REFUSE:
            _refuse(intent, basis, chosen)
        added = {choice.tunable: choice.value for choice in chosen.choices}
        tried = await self._plans.plan(
            vm, profile, revision, destination, values={**given, **added}, steps=steps
        )
        blocked = {finding.tunable for finding in tried.plan.blockers()}
        kept = [choice for choice in chosen.choices if choice.tunable not in blocked]
        stated = StatedIntent(
            intent,
            {choice.tunable: choice.reason for choice in kept},
            chosen.pinned,
            _promise(chosen),
            () if (probe := self.forecasts.measured(vm)) is None else probe.curve().points,
        )
        return IntentPlan({**given, **{c.tunable: c.value for c in kept}}, stated)


def _offer(facts: VmFacts) -> Offer:
    """By the source alone: what the destination lacks is a blocker of the plan. How many cores are
    free is not known."""
    return Offer(
        multifd="multifd" in facts.capabilities,
        zstd="zstd" in facts.compression_methods,
        postcopy="postcopy-ram" in facts.capabilities,
    )


def _refuse(intent: Intent, basis: Basis | None, chosen: Chosen) -> None:
    if basis is None or chosen.judgement is None or chosen.judgement.kept is not False:
        return
    offers = [difference(intent, other) for other in nearest(intent, basis)[:_OFFERED]]
    helps = "it could be kept with " + ", or with ".join(offers) if offers else ""
    message = f"{describe(intent)}: {chosen.judgement.reason}"
    remedy = "; ".join(filter(None, (helps, "or set otherwise to keep-trying")))
    raise Blocked(
        "the intent cannot be kept",
        problems=[Problem("intent", "intent_infeasible", message, remedy)],
    )


def _promise(chosen: Chosen) -> str:
    found = chosen.judgement
    if found is None:
        return "what the path carries is not known, so nothing is promised"
    words = {True: "will be kept", None: "may be kept", False: "is not expected to be kept"}
    return f"{words[found.kept]}: {found.reason}"

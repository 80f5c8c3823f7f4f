"""Scenarios as they are offered and chosen.

A name stands for one setup, so that runs of one name can be held against each other: what is
run in small is called ``family/variant.quick``, and what was changed gets a name of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vmtune.bench.families import FAMILIES, SCENARIOS, Family
from vmtune.bench.scenarios import quick, select, why_not
from vmtune.domain.runs import Place
from vmtune.domain.scenario import Scenario, from_json, to_json
from vmtune.errors import InvalidInput, NotFound, SetupError
from vmtune.services.runs_places import BenchPlaces
from vmtune.settings import BenchQemu

QUICK = ".quick"
_LONGEST_VARIANT = 56  # so that a digest and its dot still fit
_DIGITS = 6

Json = Any  # any JSON


@dataclass(frozen=True, slots=True)
class OfferedScenario:
    """A scenario of the table, and whether it can be run here.

    :param why_not: why it cannot be run; empty where nothing is known against it.
    """

    scenario: Scenario
    family: Family
    why_not: str = ""


class ScenarioService:
    """Tells which scenarios there are, and which can be run on this machine."""

    def __init__(self, places: BenchPlaces) -> None:
        self._places = places

    async def list(
        self,
        patterns: tuple[str, ...] = (),
        quick_ones: bool = False,
        place: Place = Place.DIRECT,
        qemu: str = "",
        kvm: bool | None = None,
    ) -> tuple[OfferedScenario, ...]:
        """Scenarios in the order of the table.

        :param patterns: families, scenarios, or either with ``*``; empty for all.
        :param quick_ones: in small, and of families only those that the quick selection has.
        :raise InvalidInput: a pattern that names none, or no such QEMU.
        """
        small = {pattern.removesuffix(QUICK) for pattern in patterns if pattern.endswith(QUICK)}
        named = {pattern.removesuffix(QUICK) for pattern in patterns}
        chosen = [
            in_small(one) if quick_ones or one.name in small else one
            for one in (select(sorted(named)) if named else SCENARIOS.values())
            if not quick_ones or one.name in named or one.variant in FAMILIES[one.family].quick
        ]
        return await self._judged(chosen, place, qemu, kvm)

    async def get(
        self,
        name: str,
        place: Place = Place.DIRECT,
        qemu: str = "",
        kvm: bool | None = None,
    ) -> OfferedScenario:
        """One of the table.

        :raise NotFound: there is none of that name.
        """
        full = name.removesuffix(QUICK)
        if full not in SCENARIOS:
            raise NotFound(
                f"there is no scenario {name[:130]!r}",
                field="scenario",
                remedy="GET /scenarios lists them",
            )
        (offered,) = await self._judged((_named(name),), place, qemu, kvm)
        return offered

    @property
    def qemus(self) -> Iterable[BenchQemu]:
        """The QEMUs that runs can be made with."""
        return self._places.qemus.values()

    async def _judged(
        self, scenarios: Sequence[Scenario], place: Place, qemu: str, kvm: bool | None
    ) -> tuple[OfferedScenario, ...]:
        self._places.qemu(qemu)
        try:
            ground = await self._places.ground(place, qemu, kvm)
        except SetupError as error:
            reasons = [str(error)] * len(scenarios)
        else:
            reasons = [why_not(one, ground) or "" for one in scenarios]
        return tuple(
            OfferedScenario(one, FAMILIES[one.family], reason)
            for one, reason in zip(scenarios, reasons, strict=True)
        )


def in_small(scenario: Scenario) -> Scenario:
    """*scenario* as the quick selection runs it, under its own name."""
    return replace(quick(scenario), name=scenario.name + QUICK)


def chosen_scenario(chosen: str | Mapping[str, Json], changes: Mapping[str, Json]) -> Scenario:
    """The scenario that a request names or writes out, with its changes.

    :raise InvalidInput: there is none of that name, or a part cannot be accepted.
    """
    scenario = _named(chosen) if isinstance(chosen, str) else from_json(chosen, "scenario")
    if not changes:
        return scenario
    changed = from_json(changes, "changes", scenario)
    if changed == scenario or "name" in changes:
        return changed
    variant = changed.variant[:_LONGEST_VARIANT]
    return replace(changed, name=f"{changed.family}/{variant}.{_digest(changed)}")


def _named(name: str) -> Scenario:
    """:raise InvalidInput: there is no such scenario; with the nearest names."""
    full = name.removesuffix(QUICK)
    if full in SCENARIOS:
        return SCENARIOS[full] if full == name else in_small(SCENARIOS[full])
    found = select([full])  # a family or a pattern is no scenario; what is neither is refused
    raise InvalidInput(
        f"{name[:60]!r} is {len(found)} scenarios",
        field="scenario",
        code="not_one_scenario",
        remedy=f"name one, such as {found[0].name}",
    )


def _digest(scenario: Scenario) -> str:
    """The same for the same setup, whatever it is called."""
    setup = {**to_json(scenario), "name": "", "title": "", "why": ""}
    return hashlib.sha256(json.dumps(setup, sort_keys=True).encode()).hexdigest()[:_DIGITS]

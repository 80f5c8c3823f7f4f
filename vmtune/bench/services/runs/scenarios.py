"""Scenarios as they are offered and chosen.

A name stands for one setup, so that runs of one name can be compared: a smaller setup is called
``family/variant.quick``, and what was changed gets a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vmtune.bench.catalogue import CATALOGUE, OFFERED, OfferedFamily
from vmtune.bench.migration.families import SCENARIOS
from vmtune.bench.migration.scenarios import BenchHosts, matching, quick, why_not
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.runs.run import Testbed
from vmtune.bench.model.scenario.any_kind import AnyScenario, from_json, kind_of, to_json
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.scenario.names import digest
from vmtune.bench.services.runs.sites import Testbeds
from vmtune.config.settings import BenchQemu
from vmtune.errors import InvalidInput, NotFound, SetupError

QUICK = ".quick"
_LONGEST_VARIANT = 56  # so that a digest and its dot still fit

Json = Any  # any JSON


@dataclass(frozen=True, slots=True)
class OfferedScenario:
    """A scenario of the table, and whether it can be run here.

    :param why_not: why it cannot be run; empty where nothing is known against it.
    """

    scenario: AnyScenario
    family: OfferedFamily
    why_not: str = ""


class ScenarioService:
    """Lists the scenarios, and which can be run on this machine."""

    def __init__(self, testbeds: Testbeds) -> None:
        self._testbeds = testbeds

    async def list(
        self,
        patterns: tuple[str, ...] = (),
        quick_ones: bool = False,
        testbed: Testbed = Testbed.DIRECT,
        qemu: str = "",
        kvm: bool | None = None,
        kind: ScenarioKind | None = None,
    ) -> tuple[OfferedScenario, ...]:
        """Scenarios in the order of the table.

        :param patterns: families, scenarios, or either with ``*``; empty for all.
        :param quick_ones: in small, and of families only those that the quick selection has.
        :param kind: only of this one.
        :raise InvalidInput: a pattern that names none, or no such QEMU.
        """
        small = {pattern.removesuffix(QUICK) for pattern in patterns if pattern.endswith(QUICK)}
        named = {pattern.removesuffix(QUICK) for pattern in patterns}
        known = [n for n, one in CATALOGUE.items() if kind is None or kind_of(one) is kind]
        families = [n for n, one in OFFERED.items() if kind is None or one.kind is kind]
        names = matching(sorted(named), known, families) if named else known
        chosen = [
            in_small(one) if quick_ones or one.name in small else one
            for one in map(CATALOGUE.__getitem__, names)
            if not quick_ones or one.name in named or one.variant in OFFERED[one.family].quick
        ]
        return await self._judged(chosen, testbed, qemu, kvm)

    async def get(
        self,
        name: str,
        testbed: Testbed = Testbed.DIRECT,
        qemu: str = "",
        kvm: bool | None = None,
    ) -> OfferedScenario:
        """One of the table.

        :raise NotFound: there is none of that name.
        """
        full = name.removesuffix(QUICK)
        if full not in CATALOGUE or (full != name and full not in SCENARIOS):
            raise NotFound(
                f"there is no scenario {name[:130]!r}",
                field="scenario",
                remedy="GET /scenarios lists them",
            )
        (offered,) = await self._judged((_named(name),), testbed, qemu, kvm)
        return offered

    @property
    def qemus(self) -> Iterable[BenchQemu]:
        """The QEMUs that runs can be made with."""
        return self._testbeds.qemus.values()

    async def _judged(
        self, scenarios: Sequence[AnyScenario], testbed: Testbed, qemu: str, kvm: bool | None
    ) -> tuple[OfferedScenario, ...]:
        self._testbeds.qemu(qemu)
        bench_hosts: BenchHosts | str = ""
        if any(isinstance(one, Scenario) for one in scenarios):
            try:
                bench_hosts = await self._testbeds.bench_hosts(testbed, qemu, kvm)
            except SetupError as error:
                bench_hosts = str(error)
        return tuple(
            OfferedScenario(
                one, OFFERED[one.family], self._why_not(one, bench_hosts, testbed, qemu)
            )
            for one in scenarios
        )

    def _why_not(
        self, scenario: AnyScenario, bench_hosts: BenchHosts | str, testbed: Testbed, qemu: str
    ) -> str:
        if isinstance(scenario, Scenario):
            return (
                bench_hosts
                if isinstance(bench_hosts, str)
                else why_not(scenario, bench_hosts) or ""
            )
        return self._testbeds.why_not_alone(scenario, testbed, qemu)


def in_small(scenario: AnyScenario) -> AnyScenario:
    """*scenario* as the quick selection runs it, under its own name. Only a migration's can be
    made small: others are what they are called."""
    if not isinstance(scenario, Scenario):
        return scenario
    return replace(quick(scenario), name=scenario.name + QUICK)


def chosen_scenario(chosen: str | Mapping[str, Json], changes: Mapping[str, Json]) -> AnyScenario:
    """The scenario that a request names or writes out, with its changes.

    :raise InvalidInput: there is none of that name, or a part cannot be accepted.
    """
    scenario = _named(chosen) if isinstance(chosen, str) else from_json(chosen, "scenario")
    if not changes:
        return scenario
    changed = from_json(changes, "changes", scenario)
    if changed == scenario or "name" in changes:
        return changed
    if not isinstance(changed, Scenario):
        return replace(changed, name="")  # what it is called follows from what it is
    variant = changed.variant[:_LONGEST_VARIANT]
    return replace(changed, name=f"{changed.family}/{variant}.{_digest(changed)}")


def _named(name: str) -> AnyScenario:
    """:raise InvalidInput: there is no such scenario; with the nearest names."""
    full = name.removesuffix(QUICK)
    if full in SCENARIOS:
        return SCENARIOS[full] if full == name else in_small(SCENARIOS[full])
    if name in CATALOGUE:
        return CATALOGUE[name]
    # A family or a pattern is no scenario; and of blocks and boots there is none in small.
    found = matching([name if full in CATALOGUE else full], CATALOGUE, OFFERED)
    raise InvalidInput(
        f"{name[:60]!r} is {len(found)} scenarios",
        field="scenario",
        code="not_one_scenario",
        remedy=f"name one, such as {found[0]}",
    )


def _digest(scenario: AnyScenario) -> str:
    """The same for the same setup, whatever it is called."""
    return digest({**to_json(scenario), "name": "", "title": "", "why": ""})

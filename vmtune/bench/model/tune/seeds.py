"""What a search begins with besides the default: the profile in use, and the shipped templates."""

from __future__ import annotations

from collections.abc import Mapping

from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.scenario.any_kind import AnyScenario, kind_of
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.settable import settable
from vmtune.bench.model.tune.space import Space, outside, same, settle
from vmtune.bench.model.tune.spec import CURRENT, Seed
from vmtune.model.profile_templates import profile_templates
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.tunable import Value


def seeds_of(
    scenario: AnyScenario,
    space: Space,
    current: Mapping[str, Value] | None,
    *,
    rivals: bool = True,
    tunables: TunableRegistry | None = None,
) -> tuple[Seed, ...]:
    """The seeds of a study, without two that are the same.

    :param current: the values of the profile in use, whole; None without one.
    :param rivals: with the shipped templates. Of each only what the space has is taken: what the
        study does not vary is the operator's own choice. Their steps are left out.
    """
    found = [] if current is None else [Seed(CURRENT, dict(current))]
    if not rivals or kind_of(scenario) is not ScenarioKind.MIGRATION:
        return tuple(found)
    assert isinstance(scenario, Scenario)
    table = tunables or settable()
    base = scenario.values
    for template in profile_templates(scenario.vm.memory_bytes):
        left_out = set(outside(template.values, space))
        inside = {name: v for name, v in template.values.items() if name not in left_out}
        settings, broken = settle(inside, base)
        known = [{}, *(one.settings for one in found)]
        if broken or any(same(settings, one, base, table) for one in known):
            continue
        found.append(Seed(template.name, settings))
    return tuple(found)

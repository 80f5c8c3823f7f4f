"""Scenarios of any kind: read and written by what their JSON says in ``kind``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.scenario import block, boot, srcu
from vmtune.bench.model.scenario import migration as scenario
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.scenario.parts import laid_over
from vmtune.bench.model.scenario.srcu import SrcuScenario
from vmtune.documents.strict import join, short
from vmtune.errors import InvalidInput

AloneScenario = BlockScenario | BootScenario | SrcuScenario
"""What is measured on one machine, without a migration."""
AnyScenario = Scenario | AloneScenario

Json = Any  # any JSON
_NOT_OVERRIDDEN = ("name", "values")
_CLASSES: Mapping[ScenarioKind, type[AnyScenario]] = {
    ScenarioKind.MIGRATION: Scenario,
    ScenarioKind.BLOCK: BlockScenario,
    ScenarioKind.BOOT: BootScenario,
    ScenarioKind.SRCU: SrcuScenario,
}
assert set(_CLASSES) == set(ScenarioKind)
assert {block.KIND, boot.KIND, srcu.KIND, ScenarioKind.MIGRATION} == set(ScenarioKind)
_READERS: Mapping[ScenarioKind, Callable[[object, str], AnyScenario]] = {
    ScenarioKind.BLOCK: block.from_json,
    ScenarioKind.BOOT: boot.from_json,
    ScenarioKind.SRCU: srcu.from_json,
}

OVERRIDABLE = tuple(
    dict.fromkeys(
        part.name
        for kind in _CLASSES.values()
        for part in fields(kind)
        if part.name not in _NOT_OVERRIDDEN
    )
)
"""The parts of a scenario, of any kind, that a campaign's cell or arm may lay over it."""


def kind_of(one: AnyScenario) -> ScenarioKind:
    """Its kind."""
    return next(kind for kind, its in _CLASSES.items() if isinstance(one, its))


def to_json(one: AnyScenario) -> dict[str, Json]:
    """All of *one*, so that :func:`from_json` reads back the same. A migration's says no kind."""
    if isinstance(one, BlockScenario):
        return block.to_json(one)
    if isinstance(one, SrcuScenario):
        return srcu.to_json(one)
    return boot.to_json(one) if isinstance(one, BootScenario) else scenario.to_json(one)


def from_json(raw: object, where: str = "", base: AnyScenario | None = None) -> AnyScenario:
    """A scenario from JSON or TOML.

    :param where: what problems call the document; its parts follow.
    :param base: what is left out is as there; ``values`` are laid over its own, and a null takes
        one away. Of a combination only what is given changes.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    kind = _kind(raw, where, base)
    if kind is ScenarioKind.MIGRATION:
        assert base is None or isinstance(base, Scenario)
        if isinstance(raw, Mapping):
            raw = {name: part for name, part in raw.items() if name != "kind"}
        return scenario.from_json(raw, where, base)
    if base is not None and isinstance(raw, Mapping):
        raw = laid_over(to_json(base), raw)
    return _READERS[kind](raw, where)


def _kind(raw: object, where: str, base: AnyScenario | None) -> ScenarioKind:
    """The kind that it says, or that of *base*.

    :raise InvalidInput: there is none such, or it is another than that of *base*.
    """
    usual = ScenarioKind.MIGRATION if base is None else kind_of(base)
    said = raw.get("kind", usual.value) if isinstance(raw, Mapping) else usual.value
    known = [kind for kind in ScenarioKind if kind.value == said]
    if known and (base is None or known == [usual]):
        return known[0]
    words = usual.value if base is not None else ", ".join(ScenarioKind)
    raise InvalidInput(
        f"{short(said)} is not a kind of scenario"
        if not known
        else f"a scenario of the kind {usual.value} cannot become one of the kind {known[0].value}",
        field=join(where, "kind"),
        code="other_kind" if known else "not_a_choice",
        remedy=f"use {words}",
    )


def has_guest(scenario: AnyScenario) -> bool:
    """Whether a run has a guest that may run by KVM or TCG, as the run wants."""
    if isinstance(scenario, BlockScenario):
        return scenario.driver is not None
    return isinstance(scenario, Scenario)

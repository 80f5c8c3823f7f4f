"""The written form of a campaign, the same in TOML and in JSON::

    name = "stock-against-tuned"
    scenario = "precopy/stock"          # one of those that ship, or a table: a scenario's parts
    blocks = 6
    primary_metric = "total_time_ms"

    [[arms]]
    name = "stock"

    [[arms]]
    name = "tuned"
    values = {multifd = true, multifd_channels = 2}

    [[cells]]                           # optional: conditions under which all arms are compared
    name = "busy"
    host_load = "busy"
    scenario = {workload = {dirty_mb_per_s = 200}}

Everything but name, scenario and arms has a default, that of
:class:`~vmtune.bench.model.campaign.campaign.Campaign`,
:class:`~vmtune.bench.model.campaign.campaign.Arm` and
:class:`~vmtune.bench.model.campaign.campaign.Cell`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from vmtune.bench.model.campaign.campaign import (
    MOST_ARMS,
    MOST_BLOCKS,
    MOST_CELLS,
    MOST_SEED,
    Arm,
    Beside,
    Campaign,
    CampaignPlace,
    Cell,
    HostLoad,
    OtherEnvironment,
    Overrides,
)
from vmtune.bench.model.scenario import any_kind as any_scenario
from vmtune.bench.model.scenario.any_kind import OVERRIDABLE, AnyScenario
from vmtune.bench.model.scenario.parts import MOST_TEXT
from vmtune.documents.strict import Reader, join, parse_toml, short
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rules import unknown_tunable
from vmtune.model.tunables.tunable import Value

Known = Mapping[str, AnyScenario]
"""Scenarios that may be called by their names."""

_MOST_NAME = 200
_MOST_OVERRIDES = 100
_MOST_SCALE = 1_000_000
_PARTS = tuple(each.name for each in fields(Campaign))
_NEEDED = ("name", "scenario", "arms")


def read_toml(text: str, known: Known) -> Campaign:
    """The campaign of a TOML file.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    return from_json(parse_toml(text, "campaign"), known)


def from_json(raw: object, known: Known) -> Campaign:
    """A campaign from JSON or TOML.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    reader = Reader()
    given = reader.mapping(
        raw, "", [name for name in _PARTS if name not in _NEEDED], required=_NEEDED
    )
    parts = {name: _READERS[name](reader, given[name], name) for name in _PARTS
             if name in given and name != "scenario"}  # fmt: skip
    scenario = _scenario(reader, given.get("scenario"), known) if "scenario" in given else None
    reader.done("the campaign cannot be accepted")
    assert scenario is not None
    return Campaign(**parts, scenario=scenario)


def to_json(campaign: Campaign) -> dict[str, Any]:  # any JSON
    """All of *campaign*, so that :func:`from_json` reads back the same."""
    return {
        **{name: getattr(campaign, name) for name in _PARTS},
        "scenario": any_scenario.to_json(campaign.scenario),
        "arms": [
            {
                **{each.name: getattr(arm, each.name) for each in fields(Arm)},
                "values": dict(arm.values),
                "scenario": dict(arm.scenario),
                "place": arm.place.value,
                "against": list(arm.against),
            }
            for arm in campaign.arms
        ],
        "cells": [
            {
                "name": cell.name,
                "scenario": dict(cell.scenario),
                "values": dict(cell.values),
                "host_load": cell.host_load.value,
            }
            for cell in campaign.cells
        ],
        "other_environment": campaign.other_environment.value,
        "overrides": sorted(campaign.overrides),
        "beside": None
        if campaign.beside is None
        else {
            "reference": campaign.beside.reference,
            "table": campaign.beside.table,
            "scale": dict(campaign.beside.scale),
        },
    }


def _scenario(reader: Reader, raw: object, known: Known) -> AnyScenario | None:
    if isinstance(raw, str):
        if raw in known:
            return known[raw]
        reader.refuse(
            "scenario",
            "unknown_scenario",
            f"there is no scenario {short(raw)}",
            "`vmtune bench scenarios` lists them; a table describes one of your own",
        )
        return None
    return reader.part("", lambda: any_scenario.from_json(raw, "scenario"), None)


def _arm(reader: Reader, raw: object, where: str) -> Arm:
    names = [each.name for each in fields(Arm)]
    parts = reader.mapping(raw, where, names[1:], ("name",))
    revision = parts.get("revision")
    return Arm(
        name=_name(reader, parts.get("name", ""), join(where, "name")),
        profile=_name(reader, parts.get("profile", ""), join(where, "profile")),
        revision=None
        if revision is None
        else reader.integer(revision, join(where, "revision"), 1, 2**31 - 1),
        values=_values(reader, parts.get("values", {}), join(where, "values")),
        scenario=_overrides(reader, parts.get("scenario", {}), join(where, "scenario")),
        qemu=_name(reader, parts.get("qemu", ""), join(where, "qemu")),
        place=reader.choice(
            parts.get("place", CampaignPlace.DIRECT.value),
            join(where, "place"),
            CampaignPlace,
            CampaignPlace.DIRECT,
        ),
        against=reader.sequence(
            parts.get("against", []),
            join(where, "against"),
            lambda each, field: _name(reader, each, field),
            MOST_ARMS,
        ),
    )


def _cell(reader: Reader, raw: object, where: str) -> Cell:
    parts = reader.mapping(raw, where, ("scenario", "values", "host_load"), ("name",))
    return Cell(
        name=_name(reader, parts.get("name", ""), join(where, "name")),
        scenario=_overrides(reader, parts.get("scenario", {}), join(where, "scenario")),
        values=_values(reader, parts.get("values", {}), join(where, "values")),
        host_load=reader.choice(
            parts.get("host_load", HostLoad.IDLE.value),
            join(where, "host_load"),
            HostLoad,
            HostLoad.IDLE,
        ),
    )


def _overrides(reader: Reader, raw: object, where: str) -> Overrides:
    return dict(reader.mapping(raw, where, OVERRIDABLE))


def _values(reader: Reader, raw: object, where: str) -> Mapping[str, Value]:
    """Values of known tunables, each acceptable by itself: what they lack or contradict shows
    once they are laid over the scenario's."""
    values: dict[str, Value] = {}
    for name, value in reader.mapping(raw, where).items():
        tunable = BUILT_IN.get(name)
        if tunable is None:
            reader.problems.append(unknown_tunable(name, join(where, name), BUILT_IN))
            continue
        try:
            values[name] = tunable.accept(value)
        except ValueError as error:
            reader.refuse(
                join(where, name), "invalid_value", str(error), f"allowed: {tunable.allowed()}"
            )
    return values


def read_beside(reader: Reader, raw: object, where: str) -> Beside | None:
    """Which published table stands beside the results; None for none."""
    if raw is None:
        return None
    parts = reader.mapping(raw, where, ("table", "scale"), ("reference",))
    scale = reader.mapping(parts.get("scale", {}), join(where, "scale"))
    return Beside(
        _name(reader, parts.get("reference", ""), join(where, "reference")),
        _name(reader, parts.get("table", ""), join(where, "table")),
        {
            name: reader.integer(factor, join(where, f"scale.{name}"), 1, _MOST_SCALE, 1)
            for name, factor in scale.items()
        },
    )


def _name(reader: Reader, raw: object, where: str) -> str:
    return reader.text(raw, where, _MOST_NAME)


def _text(reader: Reader, raw: object, where: str) -> str:
    return reader.text(raw, where, MOST_TEXT)


def _arms(reader: Reader, raw: object, where: str) -> tuple[Arm, ...]:
    return reader.sequence(raw, where, lambda each, field: _arm(reader, each, field), MOST_ARMS)


def _cells(reader: Reader, raw: object, where: str) -> tuple[Cell, ...]:
    return reader.sequence(raw, where, lambda each, field: _cell(reader, each, field), MOST_CELLS)


def _runs(reader: Reader, raw: object, where: str) -> int:
    return reader.integer(raw, where, 0, MOST_BLOCKS, 1)


def _seed(reader: Reader, raw: object, where: str) -> int | None:
    return None if raw is None else reader.integer(raw, where, 0, MOST_SEED)


def _margin(reader: Reader, raw: object, where: str) -> float:
    return reader.number(raw, where, 0, 100)


def _other_environment(reader: Reader, raw: object, where: str) -> OtherEnvironment:
    return reader.choice(raw, where, OtherEnvironment, OtherEnvironment.REFUSE)


def _kvm(reader: Reader, raw: object, where: str) -> bool | None:
    return None if raw is None else reader.boolean(raw, where)


def _codes(reader: Reader, raw: object, where: str) -> frozenset[str]:
    return frozenset(
        reader.sequence(raw, where, lambda each, field: _name(reader, each, field), _MOST_OVERRIDES)
    )


_READERS: Mapping[str, Callable[[Reader, object, str], Any]] = {
    "name": _name,
    "arms": _arms,
    "cells": _cells,
    "title": _text,
    "why": _text,
    "blocks": _runs,
    "seed": _seed,
    "primary_metric": _name,
    "margin_percent": _margin,
    "warmup_runs": _runs,
    "other_environment": _other_environment,
    "kvm": _kvm,
    "overrides": _codes,
    "beside": read_beside,
}
assert {*_READERS, "scenario"} == set(_PARTS), "a part without its reader"

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

from collections.abc import Mapping
from typing import Any

from vmtune.bench.model.campaign.campaign import Campaign
from vmtune.bench.model.scenario import any_kind as any_scenario
from vmtune.bench.model.scenario.any_kind import AnyScenario
from vmtune.documents import dataclass_json as documents
from vmtune.documents.strict import parse_toml

Known = Mapping[str, AnyScenario]
"""Scenarios that may be called by their names."""


def read_toml(text: str, known: Known) -> Campaign:
    """The campaign of a TOML file.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    return from_json(parse_toml(text, "campaign"), known)


def from_json(raw: object, known: Known) -> Campaign:
    """A campaign from JSON or TOML.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    if isinstance(raw, Mapping):
        name = raw.get("scenario")
        if isinstance(name, str) and name in known:
            raw = {**raw, "scenario": any_scenario.to_json(known[name])}
    return documents.from_json(Campaign, raw, "", "the campaign")


def to_json(campaign: Campaign) -> dict[str, Any]:  # any JSON
    """All of *campaign*, so that :func:`from_json` reads back the same."""
    written: dict[str, Any] = documents.to_json(campaign)
    return written

"""The files that ship with the tables: each source's matrix, as far as one machine allows."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from vmtune.documents.strict import short
from vmtune.errors import NotFound


class FileKind(StrEnum):
    """What reads a file."""

    CAMPAIGN = "campaign"
    """:mod:`vmtune.bench.model.campaign.file`"""
    BLOCK = "block"
    """:mod:`vmtune.bench.model.campaign.matrix`"""
    BOOT = "boot"
    """:mod:`vmtune.bench.model.campaign.matrix`"""
    SRCU = "srcu"
    """:mod:`vmtune.bench.model.campaign.matrix`"""


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A file in ``scenarios/``."""

    name: str
    kind: FileKind
    title: str
    text: str


@cache
def scenario_files() -> Mapping[str, ScenarioFile]:
    """Every file by name, in the order of names."""
    found = [
        _read(file.name.removesuffix(".toml"), file.read_text("utf-8"))
        for file in (files("vmtune.reference") / "scenarios").iterdir()
        if file.name.endswith(".toml")
    ]
    return MappingProxyType({each.name: each for each in sorted(found, key=lambda each: each.name)})


def scenario_file(name: str) -> ScenarioFile:
    """One of them.

    :raise NotFound: there is none of that name.
    """
    known = scenario_files()
    if name not in known:
        raise NotFound(
            f"there is no scenario file {short(name)}",
            field="name",
            remedy=f"known are {', '.join(known)}",
        )
    return known[name]


def _read(name: str, text: str) -> ScenarioFile:
    document = tomllib.loads(text)
    kinds = [kind for kind in FileKind if kind.value in document]
    return ScenarioFile(name, kinds[0] if kinds else FileKind.CAMPAIGN, document["title"], text)

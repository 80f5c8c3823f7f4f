"""The written form of a study, the same in TOML and in JSON::

    name = "faster-over-the-link"
    scenario = "precopy/stock"          # one of those that ship, or a table: a scenario's parts
    objective = "minimise total_time_ms where guest_silence_ms <= 300 and completed"
    space = "auto"                      # or a table, see vmtune.bench.model.tune.space
    budget = {runs = 120}

Everything but name, scenario and objective has a default, that of
:class:`~vmtune.bench.model.tune.spec.StudySpec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vmtune.bench.model.campaign.file import Known
from vmtune.bench.model.scenario import any_kind as any_scenario
from vmtune.bench.model.settable import settable
from vmtune.bench.model.tune.space import AUTO, read_space
from vmtune.bench.model.tune.spec import StudySpec
from vmtune.documents import dataclass_json as documents
from vmtune.documents.strict import Reader, parse_toml
from vmtune.errors import InvalidInput
from vmtune.model.tunables.registry import TunableRegistry


def read_toml(text: str, known: Known, tunables: TunableRegistry | None = None) -> StudySpec:
    """The study of a TOML file.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    return from_json(parse_toml(text, "study"), known, tunables)


def from_json(raw: object, known: Known, tunables: TunableRegistry | None = None) -> StudySpec:
    """A study from JSON or TOML. A scenario may be called by its name in *known*.

    :param tunables: the table; None for all that benchmarks can set.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    reader = Reader()
    if isinstance(raw, Mapping):
        given = dict(raw)
        name, space = given.get("scenario"), given.get("space")
        if isinstance(name, str) and name in known:
            given["scenario"] = any_scenario.to_json(known[name])
        if space == AUTO:
            given["space"] = None
        elif space is not None:
            found = read_space(space, "space", tunables or settable(), reader)
            given["space"] = documents.to_json(found) if found else None
        raw = given
    made = documents.read(reader, StudySpec, raw, "")
    reader.done("the study cannot be accepted")
    if made is None:
        raise InvalidInput("the study cannot be accepted")
    return made


def to_json(spec: StudySpec) -> dict[str, Any]:  # any JSON
    """All of *spec*, so that :func:`from_json` reads back the same."""
    written: dict[str, Any] = documents.to_json(spec)
    return written

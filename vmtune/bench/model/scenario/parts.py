"""What scenarios of every kind consist of, with the bounds of each part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from annotated_types import Interval, MaxLen

from vmtune.bench.model.settable import settable
from vmtune.documents.dataclass_json import Written
from vmtune.documents.strict import Reader, join, short
from vmtune.model.tunables.rules import accept_values
from vmtune.model.tunables.tunable import Value
from vmtune.units import Unit

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
LEAST_MEMORY_BYTES = 32 * MIB
MAX_MEMORY_BYTES = 1 << 44
MAX_VCPUS = 1024
MAX_TEXT = 2000

Text = Annotated[str, MaxLen(MAX_TEXT)]
MemoryBytes = Annotated[int, Interval(ge=LEAST_MEMORY_BYTES, le=MAX_MEMORY_BYTES), Unit.BYTES]
Vcpus = Annotated[int, Interval(ge=1, le=MAX_VCPUS)]


NO_PACKS = (
    "The tunables of a pack can be set where the service has loaded it: name it in the setting "
    "packs."
)
"""The remedy for a tunable that no row of the table has."""


def accept_bench_values(raw: Mapping[str, object], prefix: str = "values.") -> dict[str, Value]:
    """*raw* as typed values of the tunables that benchmarks can set.

    :raise InvalidInput: as :func:`~vmtune.model.tunables.rules.accept_values`.
    """
    return accept_values(raw, settable(), prefix, NO_PACKS)


def _values(reader: Reader, raw: object, where: str) -> Mapping[str, Value]:
    given = reader.mapping(raw, where)
    nothing: Mapping[str, Value] = {}
    return reader.part("", lambda: accept_bench_values(given, f"{where}."), nothing)


Values = Annotated[Mapping[str, Value], Written(_values)]
"""Tunables; a null takes away what was there before."""


def without_kind(raw: object, where: str, kind: str, reader: Reader) -> object:
    """The other parts of a scenario that may say its kind; another kind is a problem."""
    if not isinstance(raw, Mapping):
        return raw
    if raw.get("kind", kind) != kind:
        reader.refuse(
            join(where, "kind"),
            "not_a_choice",
            f"{short(raw['kind'])} is not {kind}",
            f"use {kind}",
        )
    return {name: part for name, part in raw.items() if name != "kind"}


def laid_over(base: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:  # any JSON
    """*parts* over *base*, and over what its objects consist of."""
    return {
        **base,
        **{
            name: {**base[name], **part}
            if isinstance(part, Mapping) and isinstance(base.get(name), Mapping)
            else part
            for name, part in parts.items()
        },
    }

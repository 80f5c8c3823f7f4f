"""What is told of values that are accepted: rounded, or refused later by a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from vmtune.model.tunables.tunable import Route, Tunable, Value


class NoteKind(StrEnum):
    """Why a value has a note."""

    ROUNDED = "rounded"
    REFUSED_BY_LIBVIRT = "refused by libvirt"


@dataclass(frozen=True, slots=True)
class ValueNote:
    """Something to know of an accepted value."""

    tunable: str
    kind: NoteKind
    message: str


def value_notes(
    raw: Mapping[str, object], accepted: Mapping[str, Value], tunables: Mapping[str, Tunable]
) -> Iterator[ValueNote]:
    """The notes of *accepted* values, in their order.

    :param raw: the same as they were written.
    """
    for name, value in accepted.items():
        row = tunables[name]
        rounding = row.rounding(raw.get(name))
        if rounding:
            message = f"{rounding}: libvirt takes whole MiB/s"
            yield ValueNote(name, NoteKind.ROUNDED, message)
        around = whole_around(row, value)
        if around is not None:
            message = (
                f"a plan refuses it on hosts with libvirt, which takes whole MiB/s: "
                f"use {' or '.join(map(row.render, around))}"
            )
            yield ValueNote(name, NoteKind.REFUSED_BY_LIBVIRT, message)


def whole_around(row: Tunable, value: Value) -> tuple[int, ...] | None:
    """The values below and above *value* that libvirt takes; None where it takes *value*. 0 is not
    among them where it is no amount.

    libvirt takes bandwidths in MiB/s.
    """
    scale = row.libvirt.scale if row.libvirt else 1
    if row.route is not Route.MIGRATE or scale <= 1 or isinstance(value, str) or not value % scale:
        return None
    below = value // scale * scale
    return (below + scale,) if below == 0 and row.zero else (below, below + scale)

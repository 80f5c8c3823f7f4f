"""Values, sizes, times and outcomes as people read them."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from vmtune.client.connection.http import Document
from vmtune.client.views.output import Column, paint, prose, remedy, table
from vmtune.units import Unit, approximate

_MS_IN_S = 1000
_SUFFIXES = {
    Unit.PERCENT: "%",
    Unit.MIB_PER_S: "MiB/s",
    Unit.MS_PER_GIB: "ms/GiB",
    Unit.US_PER_IO: "us/IO",
    Unit.NS: "ns",
    Unit.US: "us",
    Unit.S: "s",
}


def shown(value: Document | None) -> str:
    """A value as the service words it; ``-`` where there is none."""
    return "-" if value is None else str(value["text"])


def value(tunable: str, raw: object) -> str:
    """A value that came without its words, or with them (see :func:`shown`)."""
    from vmtune.model.tunables.built_in import BUILT_IN

    if isinstance(raw, Mapping):
        return shown(raw)
    row = BUILT_IN.get(tunable)
    if raw is None or row is None:
        return "-" if raw is None else str(raw)
    return row.render(raw) if isinstance(raw, bool | int | str) else str(raw)


def size(count: float | None) -> str:
    """Bytes to three figures; ``-`` where unknown."""
    return "-" if count is None else approximate(count, Unit.BYTES)


def rate(bytes_per_s: float | None) -> str:
    """Bytes per second to three figures; ``-`` where unknown."""
    return "-" if bytes_per_s is None else approximate(bytes_per_s, Unit.BYTES_PER_S)


def milliseconds(count: int | None) -> str:
    """Milliseconds; as seconds from ten of them on, as minutes from two, as hours from two; ``-``
    where unknown."""
    if count is None:
        return "-"
    minutes, seconds = divmod(round(count / _MS_IN_S), 60)
    if minutes >= 120:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {seconds} s" if minutes >= 2 else _exact(count)


def _exact(count: int) -> str:
    """Milliseconds as they are compared: never rounded to more than a tenth of a second."""
    if count >= 10 * _MS_IN_S:
        return f"{count / _MS_IN_S:,.1f} s"
    return f"{count:,} ms"


def metric(name: str, value: float | None) -> str:
    """A figure of a benchmark run in its unit; ``-`` where the run does not have it."""
    from vmtune.bench.model.metrics.table import METRICS

    if value is None:
        return "-"
    row = METRICS.get(name)
    return f"{value:,.4g}" if row is None else _in_unit(value, row.unit)


def _in_unit(value: float, unit: Unit) -> str:
    if unit in (Unit.BYTES, Unit.BYTES_PER_S):
        return approximate(value, unit)
    if unit is Unit.MS:
        return _exact(round(value)) if value >= _MS_IN_S / 10 else f"{value:.3g} ms"
    digits = 0 if value == round(value) or abs(value) >= 100 else 1
    text = f"{value:,.{digits}f}"
    return f"{text} {_SUFFIXES[unit]}" if unit in _SUFFIXES else text


def moment(text: str | None) -> str:
    """A time of the service in this machine's time zone; empty where there is none."""
    if not text:
        return ""
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def outcomes(rows: Sequence[Document]) -> Iterator[str]:
    """Each tunable: wanted, seen, status and why."""
    columns = (
        Column("TUNABLE"),
        Column("WANTED", right=True),
        Column("SEEN", right=True),
        Column("STATUS"),
        Column("REASON", wraps=True),
    )
    cells = [
        (row["tunable"], shown(row["wanted"]), shown(row["seen"]), row["status"], row["reason"])
        for row in rows
    ]
    yield from table(columns, cells, "no tunables")


def profile(record: Document) -> str:
    """``fast revision 3``; ``none`` where a record has no profile."""
    return f"{record['profile']} revision {record['revision']}" if record["profile"] else "none"


def problems(rows: Iterable[Document], color: str = "red") -> Iterator[str]:
    """Problems with their remedies, each in a line, or in as many as a terminal needs."""
    for row in rows:
        where = f"{row['field']}: " if row.get("field") else ""
        yield from (paint(each, color) for each in prose(f"{where}{row['message']}"))
        if row.get("remedy"):
            yield from remedy(row["remedy"])

"""A forecast as people read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from vmtune.client.views.forecast_checks import corrections
from vmtune.client.views.outlook import about, helps
from vmtune.client.views.output import Column, paint, prose, remedy, table
from vmtune.client.views.render import profile, rate, size

if TYPE_CHECKING:
    from vmtune.client.connection.http import Document

_SHOWN_MS = (100, 1000, 4000, 8000)
_NEARLY = 1.3


def lines(document: Document) -> Iterator[str]:
    """What was measured, a line for each profile, then what would help and what is not known."""
    yield f"{document['vm_name']} from {document['source']} to {document['destination']}"
    yield from prose(_measured(document["probe"]))
    yield ""
    columns = (
        Column("PROFILE"),
        Column("ENDS"),
        Column("TIME", right=True),
        Column("GUEST STANDS STILL", right=True),
        Column("SENT", right=True),
        Column("PASSES", right=True, spare=1),
        Column("THROTTLE", right=True, spare=1),
    )
    candidates = document["candidates"]
    yield from table(columns, [_cells(each) for each in candidates], "no profile")
    for each in candidates:
        yield from _remarks(each, alone=len(candidates) == 1)


def _measured(probe: Document) -> str:
    seen = probe["dirtied"]
    points = []
    for wanted in _SHOWN_MS:
        point = min(seen, key=lambda one: abs(one["after_ms"] - wanted))
        if wanted / _NEARLY <= point["after_ms"] <= wanted * _NEARLY:
            points.append(f"{size(point['dirty_bytes'])} in {about(wanted)}")
    used = probe["used_bytes"]
    memory = size(probe["memory_bytes"])
    in_use = f"of {memory} {size(used)} in use" if used is not None else f"{memory} of memory"
    held = probe.get("held_bytes")  # an older service does not look
    if held is not None:
        in_use = f"of {memory} {size(held)} hold anything but zeros"
    age = about(max(0.0, probe["age_s"]) * 1000) if probe["age_s"] >= 1 else ""
    when = f"measured {age} ago" if age else "measured just now"
    return f"It dirties {', '.join(points) or 'next to nothing'}; {in_use}; {when}."


def _cells(each: Document) -> tuple[str, ...]:
    name = profile(each)
    found = each["prospect"]
    if found is None:
        return (name, "not known", "-", "-", "-", "-", "-")
    ends = {True: "yes", False: paint("no", "red"), None: paint("may not", "yellow")}
    return (
        name,
        ends[found["ends"]],
        _range(found["total_ms"], about),
        _range(found["silence_ms"], about),
        _range(found["sent_bytes"], size),
        _range(found["passes"], lambda value: f"{value:.0f}"),
        _range(found["throttle_percent"], lambda value: f"{value:.0f} %"),
    )


def _range(found: Document | None, word: Callable[[float], str]) -> str:
    """``12 s (11 s to 14 s)``; one value where the bounds are not to be told from it."""
    if found is None:
        return "-"
    low, likely, high = word(found["low"]), word(found["likely"]), word(found["high"])
    return likely if low == high else f"{likely} ({low} to {high})"


def _remarks(each: Document, *, alone: bool) -> Iterator[str]:
    name = "" if alone else f"{profile(each)}: "
    found = each["prospect"]
    if found is not None and found["needs"] is not None:
        yield ""
        yield from prose(f"{name}will not end by itself{helps(found['needs'])}")
    throughput = each["throughput"]
    if throughput is not None:
        pace = _range(throughput["bytes_per_s"], rate)
        count = throughput["records"]
        said = f"by {count} recorded migration{'' if count == 1 else 's'}"
        yield from prose(f"{name}throughput {pace}, {said if count else 'by what is set or given'}")
    correction = corrections(each)
    if correction:
        yield from prose(f"{name}{correction}, which also say how wide the bounds are")
    copy = each["copy_of_disks"]
    if copy is not None:
        yield from prose(f"{name}{_copy(copy)}")
    for code in each["blockers"]:
        yield paint(f"{name}the plan has a blocker: {code}", "red")
    for note in each["notes"]:
        yield from prose(f"{name}note: {note['message']}")
        if note["remedy"]:
            yield from remedy(note["remedy"])


def _copy(copy: Document) -> str:
    """The disks' part of the time."""
    known = f"by {copy['records']} recorded" if copy["records"] else "none is recorded"
    pace = "" if copy["bytes_per_s"] is None else f" at {_range(copy['bytes_per_s'], rate)}"
    return (
        f"of that the copy of disks {_range(copy['ms'], about)}: "
        f"{_range(copy['bytes'], size)}{pace}, {known}"
    )

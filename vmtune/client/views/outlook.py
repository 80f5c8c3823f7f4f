"""What is expected of a running migration, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vmtune.client.views.render import rate

if TYPE_CHECKING:
    from vmtune.client.connection.http import Document

_MS_IN_S = 1000
COMPLETED = "completed"
"""QEMU's status once all has arrived: its figures are those of nothing any more."""


def expected(data: Document) -> str:
    """When it ends, or what would let it end; empty where nothing is known.

    :param data: of a progress event.
    """
    outlook = data.get("outlook")
    if data.get("status") == COMPLETED:
        return "QEMU has completed, the record is being finished"
    if outlook is None or data.get("status") == "device":
        return ""
    if outlook["ends"] is False:
        return "will not end by itself" + helps(outlook.get("needs"))
    left = outlook["left_ms"]
    if left is None:
        rest = outlook["pass_left_ms"]
        first = "" if rest is None else f"first pass done in about {about(rest)}, "
        return f"{first}end not known yet" if data.get("iteration", 0) <= 1 else "end not known yet"
    least, most = about(outlook["least_left_ms"]), about(outlook["most_left_ms"])
    between = "" if least == most else f" ({least} to {most})"
    return f"about {about(left)} left{between}"


def helps(needs: Document | None) -> str:
    """Each alone would let it end."""
    if needs is None:
        return ""
    downtime, throughput = needs["downtime_limit_ms"], needs["throughput_bytes_per_s"]
    throttle = needs["throttle_percent"]
    ways = [
        f"a downtime limit of {about(downtime)}" if downtime is not None else "",
        f"{rate(throughput)} of throughput" if throughput is not None else "",
        f"a throttle of {throttle} %" if throttle is not None else "",
        "post-copy" if needs.get("postcopy", True) else "",
    ]
    named = [way for way in ways if way]
    return f": needs {' or '.join(named)}" if named else ""


def about(ms: float) -> str:
    """A time to about two figures, as one says it."""
    seconds = ms / _MS_IN_S
    if seconds < 1:
        return f"{max(10, round(ms, -1)):.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"

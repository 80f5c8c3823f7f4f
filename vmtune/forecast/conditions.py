"""Under which conditions a migration with some values would run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vmtune.forecast.course import AutoConverge, Conditions
from vmtune.model.tunables.tunable import Value

DOWNTIME_LIMIT_MS = 300
"""QEMU's own (DEFAULT_MIGRATE_SET_DOWNTIME in migration/options.c)."""
AUTO_CONVERGE = {
    "cpu_throttle_initial_percent": "initial_percent",
    "cpu_throttle_increment_percent": "increment_percent",
    "max_cpu_throttle_percent": "max_percent",
    "throttle_trigger_threshold_percent": "trigger_percent",
}
DECIDING = ("downtime_limit_ms", "auto_converge", *AUTO_CONVERGE)
"""The tunables that decide about the course, besides those of the throughput."""
_COMPRESSIONS = ("xbzrle", "compress")


def conditions_of(value: Callable[[str], Value | None]) -> Conditions:
    """The conditions; QEMU's defaults where nothing is known. The throughput is still to be put in.

    :param value: what a tunable is set to; None where that is not known.
    """
    limit = _number(value("downtime_limit_ms"))
    schedule = None
    if value("auto_converge") is True:
        known = ((field, _number(value(name))) for name, field in AUTO_CONVERGE.items())
        schedule = AutoConverge(**{field: number for field, number in known if number is not None})
    return Conditions(1.0, DOWNTIME_LIMIT_MS if limit is None else limit, auto_converge=schedule)


def compresses(values: Mapping[str, Value]) -> bool:
    """Whether pages are compressed."""
    by_channels = values.get("multifd") is True and values.get("multifd_compression", "none")
    return by_channels not in (False, "none") or any(values.get(n) is True for n in _COMPRESSIONS)


def _number(value: Value | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

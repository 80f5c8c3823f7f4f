"""Under which conditions a migration with some values would run."""

from __future__ import annotations

from collections.abc import Mapping

from vmtune.forecast.course import AutoConverge, Conditions
from vmtune.forecast.limits import LIMITING, limit_on_wire
from vmtune.model.tunables.tunable import Value

QEMU_LIMIT_MS = 300
"""QEMU's own downtime limit (DEFAULT_MIGRATE_SET_DOWNTIME in migration/options.c)."""
_AUTO_CONVERGE = {
    "cpu_throttle_initial_percent": "initial_percent",
    "cpu_throttle_increment_percent": "increment_percent",
    "max_cpu_throttle_percent": "max_percent",
    "throttle_trigger_threshold_percent": "trigger_percent",
}
DECIDING = ("downtime_limit_ms", "auto_converge", *_AUTO_CONVERGE, *LIMITING)
"""The tunables that decide about the course."""
_CACHE_BYTES = 64 << 20
"""QEMU's own for XBZRLE (DEFAULT_MIGRATE_XBZRLE_CACHE_SIZE in migration/options.c)."""
_COMPRESSIONS = ("xbzrle", "compress")


def conditions_of(values: Mapping[str, Value | None]) -> Conditions:
    """The conditions; QEMU's defaults where nothing is known. The throughput is still to be put in.

    :param values: what is set, or will be; what is None or missing is not known.
    """
    limit = _number(values.get("downtime_limit_ms"))
    schedule = None
    if values.get("auto_converge") is True:
        known = ((field, _number(values.get(name))) for name, field in _AUTO_CONVERGE.items())
        schedule = AutoConverge(**{field: number for field, number in known if number is not None})
    return Conditions(
        1.0,
        QEMU_LIMIT_MS if limit is None else limit,
        auto_converge=schedule,
        cache_bytes=cache_bytes(values),
        limit_bytes_per_s=limit_on_wire(values),
    )


def cache_bytes(values: Mapping[str, Value | None]) -> float | None:
    """XBZRLE's cache; None where it is not used."""
    if values.get("xbzrle") is not True:
        return None
    size = _number(values.get("xbzrle_cache_size_bytes"))
    return float(_CACHE_BYTES if size is None else size)


def compresses(values: Mapping[str, Value]) -> bool:
    """Whether pages are compressed."""
    by_channels = values.get("multifd") is True and values.get("multifd_compression", "none")
    return by_channels not in (False, "none") or any(values.get(n) is True for n in _COMPRESSIONS)


def _number(value: Value | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

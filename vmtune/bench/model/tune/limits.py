"""What a production host allows a study: bandwidth, CPU, hours of the day, VMs to leave alone.

They are constraints of the study, whatever its objective says: settings stay within the bandwidth,
nothing is started outside of the hours, and every breach that a run shows is counted and told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from annotated_types import Interval, MaxLen

from vmtune.errors import InvalidInput
from vmtune.model.tunables.tunable import Value
from vmtune.units import Unit

BANDWIDTH = "max_bandwidth_bytes_per_s"
THROUGHPUT = "throughput_bytes_per_s"
_HOURS = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])")
_DAY_MINUTES = 24 * 60
_TOLERATED = 1.05
"""QEMU holds its limit over windows of 100 ms: a mean above by less is rounding, no breach."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A run was beyond a limit.

    :param limit: the field of :class:`Limits`.
    :param value: what was seen; *allowed* what the limit says.
    """

    run_id: str
    limit: str
    value: float
    allowed: float


@dataclass(frozen=True, slots=True)
class Limits:
    """None, or empty, is no limit.

    :param bandwidth_bytes_per_s: the most that a migration may send.
    :param cpu_percent: while something waits for a CPU for a larger share of the time, no run is
        started; a run that began so is a breach.
    :param hours: when runs may be started, in the service's local time: ``22:00-06:00``.
    :param spare: VMs that are never touched, by name or UUID.
    :param carries_work: the study may use a VM that carries somebody's work.
    """

    bandwidth_bytes_per_s: Annotated[int, Interval(ge=1, le=1 << 62), Unit.BYTES_PER_S] | None = (
        None
    )
    cpu_percent: Annotated[float, Interval(ge=1, le=100)] | None = None
    hours: Annotated[str, MaxLen(20)] = ""
    spare: Annotated[tuple[str, ...], MaxLen(1000)] = ()
    carries_work: bool = False

    def __post_init__(self) -> None:
        if self.hours and (
            _HOURS.fullmatch(self.hours) is None or self.hours[:5] == self.hours[6:]
        ):
            raise InvalidInput(
                f"{self.hours!r} are not hours of the day",
                field="hours",
                code="invalid_hours",
                remedy="write them like 22:00-06:00, or leave them out for any time",
            )

    def opens_in_s(self, now: datetime) -> float:
        """How long until a run may be started; 0 when it may be now."""
        if not self.hours:
            return 0.0
        begins, ends = (_minutes(part) for part in self.hours.split("-"))
        at = now.hour * 60 + now.minute
        if (at - begins) % _DAY_MINUTES < (ends - begins) % _DAY_MINUTES:
            return 0.0
        opens = now.replace(second=0, microsecond=0) + timedelta(
            minutes=(begins - at) % _DAY_MINUTES
        )
        return (opens - now).total_seconds()

    def kept(self, settings: Mapping[str, Value]) -> dict[str, Value]:
        """*settings* that stay within the bandwidth: no limit, or one above, becomes this one."""
        most = self.bandwidth_bytes_per_s
        if most is None:
            return dict(settings)
        asked = settings.get(BANDWIDTH)
        within = isinstance(asked, int) and 0 < asked <= most
        return dict(settings) if within else {**settings, BANDWIDTH: most}

    def breaches(
        self, run_id: str, metrics: Mapping[str, float], host_load: float | None
    ) -> tuple[Breach, ...]:
        """What a run that has ended was beyond."""
        found = []
        rate, most = metrics.get(THROUGHPUT), self.bandwidth_bytes_per_s
        if most is not None and rate is not None and rate > most * _TOLERATED:
            found.append(Breach(run_id, "bandwidth_bytes_per_s", rate, most))
        if self.cpu_percent is not None and host_load is not None and host_load > self.cpu_percent:
            found.append(Breach(run_id, "cpu_percent", host_load, self.cpu_percent))
        return tuple(found)


def _minutes(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)

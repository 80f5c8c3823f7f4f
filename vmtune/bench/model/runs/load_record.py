"""What proves that the machine was kept busy while a run ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval, MaxLen

from vmtune.units import Unit

_Milliseconds = Annotated[float, Interval(ge=0, le=1e12)]


@dataclass(frozen=True, slots=True)
class LoadProcess:
    """One process that spins.

    :param cpu: the CPU that it is pinned to; None where it may use any.
    :param cpu_ms: CPU time that it got during the run.
    :param alive: it still ran at the end.
    """

    cpu: Annotated[int, Interval(ge=0, le=1 << 20), Unit.NONE] | None
    cpu_ms: _Milliseconds
    alive: bool


@dataclass(frozen=True, slots=True)
class LoadRecord:
    """The loads of a run.

    :param kind: as the run asked for it: ``busy`` or ``busy_pinned``.
    :param wall_ms: how long the run took.
    """

    kind: Annotated[str, MaxLen(100)]
    wall_ms: _Milliseconds
    processes: Annotated[tuple[LoadProcess, ...], MaxLen(1 << 16)] = ()

    @property
    def share(self) -> float:
        """CPU time of all by the time of the run: 2 where two CPUs were wholly theirs."""
        return sum(each.cpu_ms for each in self.processes) / self.wall_ms if self.wall_ms else 0.0

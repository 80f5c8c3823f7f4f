"""What one run of updates recorded, raw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Interval, MaxLen

from vmtune.model.host.srcu_cost import SrcuCost

_Words = Annotated[str, MaxLen(2000)]


@dataclass(frozen=True, slots=True)
class SrcuRecord:
    """Everything that was recorded of a run of updates.

    :param cost: the distributions of what was timed.
    :param ended_ms: how long the program took in all.
    :param asked: updates that were asked for while the vCPUs spin, additions and deletions
        together.
    :param host_kernel: its release.
    :param srcutree: the parameters of the host kernel's SRCU, where it has such.
    :param config_hz: the kernel's ticks a second; None where that could not be read.
    """

    cost: SrcuCost
    ended_ms: Annotated[float, Interval(ge=0, le=1e10)]
    asked: Annotated[int, Interval(ge=2, le=1 << 53)] = 2
    host_kernel: _Words = ""
    srcutree: Annotated[Mapping[str, _Words], MaxLen(1000)] = field(default_factory=dict)
    config_hz: Annotated[int, Interval(ge=1, le=1_000_000)] | None = None

    @property
    def complete(self) -> bool:
        """All that was asked for was timed."""
        return self.cost.add.count + self.cost.delete.count >= self.asked

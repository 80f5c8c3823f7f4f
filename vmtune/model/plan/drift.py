"""Drift scans: whether all VMs of a host still run with what was requested. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from vmtune.errors import Problem
from vmtune.model.host.inventory import Vm
from vmtune.model.plan.tuning_state import Tuning


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The result of one scan of a host.

    :param checked: running VMs that were compared with what is wanted.
    :param drifted: those of them that run otherwise than what was applied.
    :param without_profile: running VMs without wanted values: their QEMU was not asked.
    :param skipped: running VMs that were busy with other work, or that moved meanwhile.
    :param failed: running VMs that could not be asked; their state is unchanged.
    :param took_ms: from listing the VMs to storing the last answer.
    :param problems: why the host, or a VM, could not be asked; at most the first few.
    """

    checked: int = 0
    drifted: int = 0
    without_profile: int = 0
    skipped: int = 0
    failed: int = 0
    took_ms: int = 0
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class DriftScan:
    """The last scan of a host, and whether another one is requested.

    :param asked: number of requests so far; *answered*: the last request that the last scan
        answers. Counted, since the clocks of two services may differ.
    :param service: which one made it; empty if one service uses the database.
    :param ended_at: None where none was made yet; *result* is None then.
    """

    host: str
    asked: int = 0
    answered: int = 0
    service: str = ""
    ended_at: datetime | None = None
    result: ScanResult | None = None

    @property
    def pending(self) -> bool:
        """Whether a requested scan has not ended."""
        return self.answered < self.asked

    def due(self, now: datetime, interval_s: int) -> bool:
        """Whether it is time for the next one.

        A last one that lies further ahead than an interval was made before the clock was set
        back.

        :param interval_s: 0 for only on request.
        """
        if self.pending:
            return True
        if not interval_s:
            return False
        interval = timedelta(seconds=interval_s)
        return self.ended_at is None or abs(now - self.ended_at) >= interval


@dataclass(frozen=True, slots=True)
class Drift:
    """A VM that runs otherwise than what was applied to it, as it was last seen."""

    vm: Vm
    tuning: Tuning

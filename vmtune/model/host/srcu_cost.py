"""What an update of a VM's memory map costs on a host, and what that makes of a boot.

KVM waits for SRCU grace periods at each update: for one where a memory slot is added, for two where
one is deleted (kvm_swap_active_memslots, virt/kvm/kvm_main.c). The source (linux-kernel,
2022-06-14) counted some 6,000 updates and 9,000 grace periods in a boot of UEFI with ACPI.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

BOOT_GRACE_PERIODS = 9000
"""Of the source's boot."""
GRACE_PERIODS_OF_A_PAIR = 3
"""Of one addition and one deletion."""
SLOW_US = 2_000
"""A grace period that takes longer has slept: the source's fixed kernels took 700 to 1,200 us,
its slow one 16,000; the shortest sleep is a tick, 1,000 to 10,000 us (CONFIG_HZ 1000 to 100)."""
PUBLISHED_US = {
    "5.18's way of waiting": 708,
    "5.19-rc1 without the block `if (!jbase)`": 1192,
    "5.19-rc1": 16_044,
    "5.19-rc1 with the first diff": 16_012,
}
"""Per grace period: 8,000 of them by the time stamps of the source's log."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Of the times of one kind of update, in microseconds."""

    count: int
    median_us: float
    p90_us: float
    p99_us: float
    most_us: float
    mean_us: float

    @classmethod
    def of(cls, times_ns: Sequence[int]) -> Distribution:
        """Quantiles are the nearest of the values that are at least so large.

        :raise ValueError: there are none.
        """
        if not times_ns:
            raise ValueError("no update was timed")
        ordered = sorted(times_ns)

        def quantile(share: float) -> float:
            return ordered[max(0, math.ceil(share * len(ordered)) - 1)] / 1000

        mean = sum(ordered) / len(ordered) / 1000
        return cls(
            len(ordered), quantile(0.5), quantile(0.9), quantile(0.99), ordered[-1] / 1000, mean
        )


@dataclass(frozen=True, slots=True)
class SrcuCost:
    """What was measured with a VM of *vcpus* that spin.

    :param idle_add: and *idle_delete*: before the vCPUs ran.
    """

    vcpus: int
    add: Distribution
    delete: Distribution
    idle_add: Distribution
    idle_delete: Distribution

    @property
    def grace_period_us(self) -> float:
        """The usual time of one grace period, with all else that an update takes."""
        return (self.add.median_us + self.delete.median_us) / GRACE_PERIODS_OF_A_PAIR

    @property
    def usual_boot_s(self) -> float:
        """What the source's 9,000 grace periods take at the median."""
        return self.grace_period_us * BOOT_GRACE_PERIODS / 1e6

    @property
    def mean_boot_s(self) -> float:
        """Likewise at the mean: with what this host's other work adds."""
        pair = self.add.mean_us + self.delete.mean_us
        return pair / GRACE_PERIODS_OF_A_PAIR * BOOT_GRACE_PERIODS / 1e6

    @property
    def slow(self) -> bool:
        """Grace periods sleep."""
        return self.grace_period_us > SLOW_US


def default_parameters(config_hz: int) -> dict[str, int]:
    """The defaults of srcutree's parameters since Linux 5.19 (kernel/rcu/srcutree.c): a phase of a
    grace period polls without sleeping for about two ticks, within 3 and 1,000 times.

    >>> default_parameters(1000)["srcu_max_nodelay_phase"], default_parameters(250)
    (400, {'srcu_max_nodelay': 1000, 'srcu_max_nodelay_phase': 1000, 'srcu_retry_check_delay': 5})
    """
    retry_us = 5
    phase = min(1000, max(3, 2 * 1_000_000 // config_hz // retry_us))
    return {
        "srcu_max_nodelay": max(100, phase),
        "srcu_max_nodelay_phase": phase,
        "srcu_retry_check_delay": retry_us,
    }

"""What updates of a memory map cost: quantiles, the source's boot, and the kernel's defaults."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.model.host.srcu_cost import (
    PUBLISHED_US,
    SLOW_US,
    Distribution,
    SrcuCost,
    default_parameters,
)
from vmtune.reference.loading import reference, table_of


def cost(add_us: int, delete_us: int) -> SrcuCost:
    add, delete = (Distribution.of([us * 1000] * 3) for us in (add_us, delete_us))
    return SrcuCost(2, add, delete, add, delete)


@given(st.lists(st.integers(1, 10**10), min_size=1))
def test_quantiles_are_of_the_values_and_in_order(times: list[int]) -> None:
    found = Distribution.of(times)
    shown = [found.median_us, found.p90_us, found.p99_us, found.most_us]
    assert shown == sorted(shown)
    assert all(round(us * 1000) in times for us in shown)
    assert found.most_us == max(times) / 1000
    assert found.median_us >= statistics.median_low(times) / 1000
    for us, share in zip(shown, (0.5, 0.9, 0.99), strict=False):
        assert sum(time / 1000 <= us for time in times) >= share * len(times)


def test_without_a_time_there_is_no_distribution() -> None:
    with pytest.raises(ValueError, match="no update"):
        Distribution.of([])


def test_a_pair_of_updates_waits_for_three_grace_periods() -> None:
    found = cost(add_us=1000, delete_us=2000)
    assert found.grace_period_us == 1000
    assert found.usual_boot_s == found.mean_boot_s == 9


def test_the_published_kernels_are_told_apart() -> None:
    slow = {name: us > SLOW_US for name, us in PUBLISHED_US.items()}
    assert [slow[name] for name in PUBLISHED_US] == [False, False, True, True]
    assert not cost(SLOW_US, 2 * SLOW_US).slow
    assert cost(SLOW_US, 2 * SLOW_US + 1).slow


def test_the_published_figures_are_the_sources() -> None:
    rows = table_of(reference("srcu-boot-time"), "cost_of_8000").rows
    each = sorted(float(row.figure.value) / 8000 * 1e6 for row in rows)
    assert each == pytest.approx(sorted(PUBLISHED_US.values()), abs=0.6)


@pytest.mark.parametrize(
    ("hz", "phase"), [(100, 1000), (250, 1000), (300, 1000), (1000, 400), (1_000_000, 3)]
)
def test_defaults_are_those_of_the_kernel(hz: int, phase: int) -> None:
    """SRCU_DEFAULT_MAX_NODELAY_PHASE and SRCU_DEFAULT_MAX_NODELAY, kernel/rcu/srcutree.c."""
    assert default_parameters(hz) == {
        "srcu_max_nodelay": max(100, phase),
        "srcu_max_nodelay_phase": phase,
        "srcu_retry_check_delay": 5,
    }

"""The benchmark of the patched pool: it goes on where it was stopped, and holds its bound."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.perf.kept import Kept
from tests.perf.pools import pool_cost
from tests.perf.pools.pool_cost import PATCHED, UNPATCHED
from tests.support.qemus.qemu import Build

BUILDS = {arm: Build(arm, "") for arm in (PATCHED, UNPATCHED)}
WHERE = {"builds": ["one", "other"]}


class Blocks:
    """Blocks that cost nothing, of a patch that costs a share of the IOPS with four iothreads."""

    def __init__(self, costs: float = 0.0) -> None:
        self.orders: list[tuple[str, ...]] = []
        self._costs = costs
        self._chance = random.Random(20261126)

    async def __call__(self, builds: Mapping[str, Build], iothreads: int) -> dict[str, float]:
        self.orders.append(tuple(builds))
        machine = self._chance.gauss(100_000, 10_000)
        less = self._costs if iothreads == 4 else 0.0
        return {
            arm: machine * self._chance.gauss(1, 0.014) * (1 - less * (arm == PATCHED))
            for arm in builds
        }


def test_what_was_measured_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = Blocks()
    monkeypatch.setattr(pool_cost, "in_turns", blocks)
    file = tmp_path / "new" / "pool_guest.jsonl"
    first = pool_cost.by_iothreads(BUILDS, (4, 1), 3, Kept(file, WHERE))
    assert len(blocks.orders) == 2 * 3
    with file.open("a") as lines:
        lines.write('{"what": "half a li')
    more = pool_cost.by_iothreads(BUILDS, (4, 1), 5, Kept(file, WHERE))
    assert len(blocks.orders) == 2 * 5
    assert all(more[n][arm][:3] == first[n][arm] for n in (4, 1) for arm in BUILDS)
    pool_cost.by_iothreads(BUILDS, (4, 1), 3, Kept(file, {"builds": ["anew", "other"]}))
    assert len(blocks.orders) == 2 * (5 + 3)


def test_each_build_is_the_first_at_times(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = Blocks()
    monkeypatch.setattr(pool_cost, "in_turns", blocks)
    found = pool_cost.by_iothreads(BUILDS, (4,), 20, Kept(None, WHERE))
    assert {order[0] for order in blocks.orders} == {PATCHED, UNPATCHED}
    for arm in BUILDS:
        assert [row["block"] for row in found[4][arm]] == list(range(1, 21))


@pytest.mark.parametrize(("costs", "holds"), [(0.0, True), (0.03, False), (-0.03, True)])
def test_the_bound_is_of_what_may_be_lost(
    monkeypatch: pytest.MonkeyPatch, costs: float, holds: bool
) -> None:
    monkeypatch.setattr(pool_cost, "in_turns", Blocks(costs))
    found = pool_cost.by_iothreads(BUILDS, (4,), 100, Kept(None, WHERE))
    (check,) = pool_cost.checks(pool_cost.compared(found))
    assert check.metric.startswith("guest, 4 iothreads")
    assert check.holds is holds

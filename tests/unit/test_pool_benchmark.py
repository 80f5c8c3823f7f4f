"""The benchmark of the patched pool: it goes on where it was stopped, and holds its bound."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.perf import pool_guest
from tests.perf.kept import Kept
from tests.perf.pool_guest import PATCHED, UNPATCHED, GuestLook, GuestMemory
from tests.support.qemu import Build

BUILDS = {arm: Build(arm, "") for arm in (PATCHED, UNPATCHED)}
WHERE = {"builds": ["one", "other"]}
LOOK = GuestLook(1, 1, 1)
BACK = {f"every {pool_guest.PERIOD_S} s": GuestMemory(LOOK, LOOK, LOOK, 3, 1, 1)}


class Runs:
    """Runs that cost nothing, of a patch that costs a share of the IOPS with four iothreads."""

    def __init__(self, costs: float = 0.0) -> None:
        self.count = 0
        self._costs = costs
        self._chance = random.Random(20261126)

    def __call__(self, build: Build, iothreads: int, seconds: int, at: Path) -> dict[str, float]:
        self.count += 1
        less = self._costs if (build.label, iothreads) == (PATCHED, 4) else 0.0
        return {"iops": 100_000 * (1 - less) * self._chance.gauss(1, 0.02)}


def test_what_was_measured_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs()
    monkeypatch.setattr(pool_guest, "iops", runs)
    file = tmp_path / "new" / "pool_guest.jsonl"
    first = pool_guest.by_iothreads(BUILDS, (4, 1), 3, 5, Kept(file, WHERE))
    assert runs.count == 1 + 2 * 2 * 3
    with file.open("a") as lines:
        lines.write('{"what": "half a li')
    more = pool_guest.by_iothreads(BUILDS, (4, 1), 5, 5, Kept(file, WHERE))
    assert runs.count == 2 * 1 + 2 * 2 * 5
    assert all(more[n][arm][:3] == first[n][arm] for n in (4, 1) for arm in BUILDS)
    pool_guest.by_iothreads(BUILDS, (4, 1), 3, 5, Kept(file, {"builds": ["anew", "other"]}))
    assert runs.count == 3 * 1 + 2 * 2 * (5 + 3)


@pytest.mark.parametrize(("costs", "holds"), [(0.0, True), (0.03, False), (-0.03, True)])
def test_the_bound_is_of_what_may_be_lost(
    monkeypatch: pytest.MonkeyPatch, costs: float, holds: bool
) -> None:
    monkeypatch.setattr(pool_guest, "iops", Runs(costs))
    found = pool_guest.by_iothreads(BUILDS, (4,), 100, 5, Kept(None, WHERE))
    checks = pool_guest.checks(BACK, pool_guest.compared(found))
    assert checks[-1].metric.startswith("guest, 4 iothreads")
    assert checks[-1].holds is holds

"""A dirty ring that can end its guest: refused where it is to be set, and told where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.simulated.fakes import VM
from tests.support.simulated.world import world
from vmtune.errors import Blocked
from vmtune.model.plan.outcome import Status
from vmtune.model.profile import Target

RING = {"dirty_ring_size_entries": 65536}


async def test_it_is_refused_without_a_reaper(tmp_path: Path) -> None:
    async with world(tmp_path, ring_entries=65536) as it:
        it.drivers["a"].empties_rings_in_part()
        await it.profile(**RING)
        with pytest.raises(Blocked, match="can die in the first second"):
            await it.applications.apply(VM, "p")
        await it.profile("reaped", **RING, reaper_policy="predict")
        assert (await it.plans.plan(VM, "reaped")).plan.blockers() == ()


async def test_a_scan_tells_of_it_where_the_kernel_changed_since(tmp_path: Path) -> None:
    async with world(tmp_path, ring_entries=65536) as it:
        await it.profile(**RING)
        await it.assignments.add(Target.DEFAULT, "", "p")
        assert (await it.applications.verify(VM)).clean
        it.drivers["a"].empties_rings_in_part()
        verified = await it.applications.verify(VM)
        (outcome,) = verified.outcomes
        assert outcome.status is Status.REJECTED
        assert "set reaper_policy to predict" in outcome.reason
        assert not verified.clean

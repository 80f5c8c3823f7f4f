"""A migration that is planned anew, after a restart of the service, is judged anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.simulated.fleet import Fleet
from tests.support.simulated.world import World, fleet_world
from vmtune.errors import Blocked, Conflict
from vmtune.model.host.disks import Disk
from vmtune.model.migration.record import Migration, MigrationState

GIB = 1 << 30
LOCAL = Disk(
    "vda", path="/images/x", identity="device:a:1", format="qcow2",
    capacity_bytes=4 * GIB, allocated_bytes=GIB,
)  # fmt: skip


@pytest.fixture
def sim() -> Fleet:
    """A VM with a local disk, whose destination has no room for it any more."""
    made = Fleet()
    made.add("a", 1)
    made.add("b")
    next(iter(made.hosts["a"].vms.values())).disks = (LOCAL,)
    made.hosts["b"].nothing = replace(made.hosts["b"].nothing, free_bytes=1)
    return made


def prepared(it: World, sim: Fleet, *overrides: str) -> Migration:
    """The record that a service left which died before it began."""
    vm = next(vm for host in sim.hosts.values() for vm in host.vms.values())
    return it.store.migrations.begin(
        vm=vm.uuid,
        vm_name=vm.name,
        source="a",
        destination="b",
        wanted={"copy_storage": True},
        overrides=overrides,
        state=MigrationState.PREPARING,
    )


async def test_a_copy_that_no_longer_fits_is_refused(tmp_path: Path, sim: Fleet) -> None:
    async with fleet_world(tmp_path, sim) as it:
        record = prepared(it, sim)
        for phase in (it.job.prepare, it.job.run):
            with pytest.raises(Blocked) as refused:
                await phase(str(record.id))
            assert [each.code for each in refused.value.problems] == ["copy_no_room"]
        assert sim.ordered == {}


async def test_what_was_overridden_goes_on_with_its_copy(tmp_path: Path, sim: Fleet) -> None:
    async with fleet_world(tmp_path, sim) as it:
        record = prepared(it, sim, "copy_no_room")
        await it.job.run(str(record.id))
        assert list(sim.hosts["b"].made.values()) == [["vda"]]
        await it.job.finalize(str(record.id))
        assert it.store.migrations.get(record.id).state is MigrationState.COMPLETED


async def test_a_vm_that_has_moved_meanwhile_stays_there(tmp_path: Path, sim: Fleet) -> None:
    async with fleet_world(tmp_path, sim) as it:
        sim.add("c")
        await it.hosts.add("c", "qemu+tcp://c/system")
        sim.hosts["c"].vms, sim.hosts["a"].vms = sim.hosts["a"].vms, {}
        record = prepared(it, sim)
        with pytest.raises(Conflict, match="is on c by now"):
            await it.job.run(str(record.id))

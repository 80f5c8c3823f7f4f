"""Evacuations of VMs that live on local disks: copied or left, and with room for all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.simulated.fleet import Fleet, SimHost, loads
from tests.support.simulated.world import fleet_world
from vmtune.model.evacuation.evacuation import (
    EvacuationState,
    EvacuationVmState,
    LocalDisks,
    RoomLeft,
)
from vmtune.model.host.disks import Disk, DiskAtHost
from vmtune.model.host.facts import VmSummary
from vmtune.model.migration.admission import Limits
from vmtune.model.migration.disks import to_copy
from vmtune.model.migration.record import MigrationFields, MigrationState
from vmtune.services.evacuations.plan import EvacuationRequest

GIB = 1 << 30
LOCAL = Disk(
    "vda", path="/images/x", identity="device:a:1", format="qcow2",
    capacity_bytes=4 * GIB, allocated_bytes=GIB,
)  # fmt: skip
SHARED = replace(LOCAL, target="vdb", path="/shared/x", identity="device:s:9")
AT_ALL = DiskAtHost(True, SHARED.identity, True, 10 * GIB, "2", writable=True, reachable=True)
COPY, LEAVE, PROFILE = LocalDisks.COPY, LocalDisks.LEAVE, LocalDisks.PROFILE
LIMITS = Limits(outgoing=3, incoming=3, all=9)


def fleet(*, vms: int = 2, local: int = 1, hosts: str = "ab") -> Fleet:
    """The first *local* VMs have a disk that the other hosts lack, and one that all share."""
    made = Fleet()
    for name in hosts:
        made.add(name, vms if name == "a" else 0)
        made.hosts[name].files[SHARED.path] = AT_ALL
    for number, vm in enumerate(list(made.hosts["a"].vms.values())[:local]):
        vm.disks = (replace(LOCAL, path=f"/images/{number}"), SHARED)
    return made


async def test_local_disks_alone_are_copied_and_those_that_are_shared_are_not(
    tmp_path: Path,
) -> None:
    sim = fleet()
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        plan = await it.evacuations.plan(EvacuationRequest("a"))
        assert [vm.name for vm in plan.left] == ["a-0"]
        assert "disk_missing" in plan.left[0].reason
        assert plan.rooms == ()

        wanted = EvacuationRequest("a", local_disks=COPY)
        plan = await it.evacuations.plan(wanted)
        by_name = {vm.name: vm for vm in plan.movable}
        assert [disk.target for disk in by_name["a-0"].disks] == ["vda"]
        assert by_name["a-1"].disks == ()
        assert plan.rooms == (RoomLeft("b", ("/images",), 10 * GIB, 0, GIB),)
        assert plan.rooms[0].left_bytes == 9 * GIB

        started = await it.evacuations.start(wanted)
        async with asyncio.timeout(60):
            await it.jobs.wait(str(started.record.id))
        done = await it.evacuations.get("a", started.record.id)
        assert done.record.state is EvacuationState.COMPLETED
        assert done.record.local_disks is COPY
        assert list(sim.hosts["b"].made.values()) == [["vda"]]
        assert loads(sim) == {"a": 0, "b": 2}


async def test_what_lives_on_local_disks_is_left_whatever_its_profile_says(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, fleet(), LIMITS) as it:
        await it.profiles.create("copies", {"copy_storage": True, "copy_disks": "vda"})
        asked = EvacuationRequest("a", profile="copies")
        copied = (await it.evacuations.plan(asked)).movable
        assert sorted(len(vm.disks) for vm in copied) == [0, 1]
        plan = await it.evacuations.plan(replace(asked, local_disks=LEAVE))
        stays = next(vm for vm in plan.left if vm.name == "a-0")
        assert stays.state is EvacuationVmState.BLOCKED
        assert stays.reason == (
            "it lives on local disks, and this evacuation leaves those: vda (/images/0)"
        )


@pytest.mark.parametrize(("under_way", "copying"), [(False, 3), (True, 2)])
async def test_the_room_that_copies_under_way_will_take_is_not_given_away(
    tmp_path: Path, under_way: bool, copying: int
) -> None:
    """There are 10 GiB, of which a copy that others began takes 8 still."""
    sim = fleet(vms=4, local=4)
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        other = list(sim.hosts["a"].vms.values())[3]
        other.disks = ()
        if under_way:
            disk = replace(LOCAL, path="/images/other", allocated_bytes=9 * GIB)
            (copied,) = to_copy((disk,))
            begun = it.store.migrations.begin(
                vm=other.uuid, vm_name=other.name, source="a", destination="b",
                state=MigrationState.STARTING,
            )  # fmt: skip
            fields = MigrationFields(
                disks=(replace(copied, total_bytes=9 * GIB, copied_bytes=GIB),)
            )
            it.store.migrations.update(begun.id, **fields)
        plan = await it.evacuations.plan(EvacuationRequest("a", local_disks=COPY))
        assert len([vm for vm in plan.movable if vm.disks]) == copying
        (room,) = plan.rooms
        assert room.promised_bytes == (8 * GIB if under_way else 0)
        assert room.left_bytes == (0 if under_way else 7 * GIB)


async def test_no_more_copy_at_once_than_may_from_or_to_a_host(tmp_path: Path) -> None:
    sim = fleet(vms=4, local=3)
    sim.go.clear()
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        started = await it.evacuations.start(EvacuationRequest("a", local_disks=COPY))
        await it.until(lambda: sim.leaving["a"] == 2)  # a copy, and the VM that has none
        await it.until(lambda: it.store.slots.counts() == (2, 2))
        assert len(sim.hosts["b"].made) == 1
        sim.go.set()
        async with asyncio.timeout(60):
            await it.jobs.wait(str(started.record.id))
        assert loads(sim) == {"a": 0, "b": 4}


async def test_a_plan_asks_both_hosts_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the destination was asked, the source does not say what disks the VM has."""
    sim = fleet()
    there = asyncio.Event()
    list_vms, disks = SimHost.list_vms, SimHost.disks

    async def asked_there(host: SimHost) -> Sequence[VmSummary]:
        if host.name == "b":
            there.set()
        return await list_vms(host)

    async def asked_here(host: SimHost, vm: UUID) -> Sequence[Disk]:
        await there.wait()
        return await disks(host, vm)

    async with fleet_world(tmp_path, sim, LIMITS) as it:
        monkeypatch.setattr(SimHost, "list_vms", asked_there)
        monkeypatch.setattr(SimHost, "disks", asked_here)
        vm = next(iter(sim.hosts["a"].vms))
        async with asyncio.timeout(60):
            planned = await it.plans.plan(vm, destination="b", values={"copy_storage": True})
        assert [disk.target for disk in planned.plan.local_disks] == ["vda"]

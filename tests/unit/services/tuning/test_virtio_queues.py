"""Virtio queues that are longer than the destination's QEMU takes: looked at where it matters."""

from __future__ import annotations

from pathlib import Path

from tests.support.simulated.fakes import VM, recording
from tests.support.simulated.world import World, world
from vmtune.testing.fake.qemu import FakeQemu, Fault, FaultKind

STATUS = "x-query-virtio-queue-status"


def make_newer(qemu: FakeQemu) -> None:
    qemu.recording = {**qemu.recording, "query-version": recording("11.1.3")["query-version"]}


async def planned(it: World) -> list[str]:
    plan = (await it.plans.plan(VM, destination="b", without_profile=True)).plan
    return [finding.code for finding in plan.blockers()]


def asked(it: World) -> list[object]:
    return [arguments for command, arguments in it.source.commands if command == STATUS]


async def test_they_are_refused_beforehand(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        make_newer(it.waiting)
        it.source.virtqueue_entries = 1024
        assert await planned(it) == ["virtio_queues_too_long"]
        path = "/machine/peripheral/virtio-disk0/virtio-backend"
        assert asked(it) == [{"path": path, "queue": 0}]


async def test_a_qemu_that_does_not_say_is_not_refused(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        make_newer(it.waiting)
        it.source.virtqueue_entries = 1024
        it.source.faults.append(Fault(FaultKind.REFUSE, STATUS))
        assert await planned(it) == []
        assert it.source.faults == []  # it was asked


async def test_nothing_is_asked_where_the_destination_takes_any(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        it.source.virtqueue_entries = 1024
        assert await planned(it) == []
        assert asked(it) == []


async def test_a_qemu_that_has_no_longer_ones_is_not_asked(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        make_newer(it.source)
        make_newer(it.waiting)
        assert await planned(it) == []
        assert asked(it) == []

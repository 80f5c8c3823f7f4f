"""How a block benchmark's QEMU is tuned before its load: read back, and the pool foreseen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest

from tests.support.examples import facts
from vmtune.bench.block import stage
from vmtune.bench.block.stage import predict_pool
from vmtune.bench.block.stage import tune as tune_qemu
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.guest_driver import GuestDriver
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.errors import CommandRefused, SetupError
from vmtune.model.host.facts import MemoryMaps, Reading, VmFacts
from vmtune.model.plan.changes import Change
from vmtune.model.versions import Version

CELL = BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, 64, 4)
FACTS = replace(
    facts.vm(), qemu=Version(10), iothreads=("iothread0",), virtio_disks=(),
    maps=MemoryMaps(300, 0), readings={},
)  # fmt: skip


class Driver:
    """A QEMU that keeps values, or others."""

    def __init__(self, kept: Mapping[str, Reading]) -> None:
        self.kept = kept
        self.written: list[Change] = []

    async def vm_facts(self, _: UUID) -> VmFacts:
        return FACTS

    async def write_and_read(
        self, _: UUID, changes: Sequence[Change], names: Collection[str]
    ) -> dict[str, Reading]:
        self.written += changes
        return {name: self.kept[name] for name in names}


async def tune(kept: Mapping[str, Reading], **values: int) -> Driver:
    driver = Driver(kept)
    scenario = BlockScenario(CELL, values=values)
    await tune_qemu(driver, UUID(int=1), scenario)
    return driver


async def test_only_what_is_live_is_set_on_the_running_qemu() -> None:
    kept = {"iothread_poll_max_ns": Reading(None, {"iothread0": 5})}
    driver = await tune(kept, iothread_poll_max_ns=5, virtio_blk_queues=4)
    assert driver.written == [Change("iothread_poll_max_ns", 5)]


@pytest.mark.parametrize("reading", [Reading(None, {"iothread0": 4}), Reading(4), Reading(None)])
async def test_what_does_not_take_effect_is_no_measurement(reading: Reading) -> None:
    with pytest.raises(CommandRefused, match="was set to 5") as caught:
        await tune({"iothread_poll_max_ns": reading}, iothread_poll_max_ns=5)
    (problem,) = caught.value.problems
    assert (problem.field, problem.code) == ("values.iothread_poll_max_ns", "not_effective")


def test_no_more_than_16_requests_of_a_connection_are_foreseen() -> None:
    assert predict_pool(FACTS, BlockScenario(CELL)).requests == 4 * 16
    assert predict_pool(FACTS, BlockScenario(replace(CELL, iodepth=8))).requests == 4 * 8
    of_a_guest = BlockScenario(CELL, driver=GuestDriver())
    assert predict_pool(FACTS, of_a_guest).requests == 4 * 64


@pytest.mark.parametrize(
    ("total", "free", "has_room"),
    [
        (100 << 30, 11 << 30, True),
        (100 << 30, (11 << 30) - 1, False),  # a tenth stays free
        (500 << 20, (1 << 30) + (64 << 20), True),
        (500 << 20, (1 << 30) + (64 << 20) - 1, False),  # and 64 MiB of a small disk
    ],
)
def test_a_node_does_not_fill_its_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int, free: int, has_room: bool
) -> None:
    monkeypatch.setattr(
        stage.shutil, "disk_usage", lambda _: SimpleNamespace(total=total, used=0, free=free)
    )
    scenario = BlockScenario(replace(CELL, node=NodeKind.RAW), size_bytes=1 << 30)
    if has_room:
        with stage.node_file(tmp_path, scenario) as file:
            assert file is not None
        return
    with (
        pytest.raises(SetupError, match="stay free") as refused,
        stage.node_file(tmp_path, scenario),
    ):
        pass
    assert refused.value.problems[0].code == "no_room"

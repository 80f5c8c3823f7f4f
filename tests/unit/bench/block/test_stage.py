"""How a block benchmark's QEMU is tuned before its load: read back, and the pool foreseen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tests.support import facts
from vmtune.bench.block.stage import _tune, foresee
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.errors import CommandRefused
from vmtune.model.host.facts import MemoryMaps, Reading
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

    async def vm_facts(self, _: UUID) -> Any:
        return FACTS

    async def write(self, _: UUID, changes: Sequence[Change]) -> None:
        self.written += changes

    async def read(self, _: UUID, names: Sequence[str]) -> dict[str, Reading]:
        return {name: self.kept[name] for name in names}


async def tune(kept: Mapping[str, Reading], **values: int) -> Driver:
    driver = Driver(kept)
    await _tune(driver, UUID(int=1), BlockScenario(CELL, values=values))  # type: ignore[arg-type]
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
    assert foresee(FACTS, CELL).requests == 4 * 16
    assert foresee(FACTS, replace(CELL, iodepth=8)).requests == 4 * 8

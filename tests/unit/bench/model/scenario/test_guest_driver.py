"""Disks that the project's guest loads: what a scenario can have, and how they share iothreads."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.model.campaign.matrix import campaign_of
from vmtune.bench.model.campaign.matrix import from_json as matrix_of
from vmtune.bench.model.scenario.block import BlockScenario, from_json, to_json
from vmtune.bench.model.scenario.guest_driver import (
    GuestDriver,
    at_once_in_a_queue,
    iothreads_of_disks,
    queue_size,
)
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.errors import InvalidInput

CELL = BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, 64, 16, 2, 4, 2)
RAW: dict[str, Any] = {"cell": {"node": "null-co", "rw": "randread"}, "driver": {}}


def problems(**changes: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as caught:
        from_json({**RAW, **changes})
    assert all(p.message and p.remedy for p in caught.value.problems)
    return [(p.field, p.code) for p in caught.value.problems]


def cell(**changes: Any) -> dict[str, Any]:
    return {**RAW["cell"], **changes}


def test_what_is_written_is_read_back_and_named() -> None:
    made = BlockScenario(CELL, driver=GuestDriver(vcpus=2, interrupts=True))
    assert from_json(json.loads(json.dumps(to_json(made)))) == made
    plain = BlockScenario(replace(CELL, disks=1, queues=1, iothreads=1, numjobs=1))
    assert plain.name == "block/null-co-randread-4k-64-1"
    assert made.name.startswith("block/null-co-randread-4k-64-16-2disks-4queues-2iothreads.")
    assert BlockScenario(CELL, driver=GuestDriver()).name != made.name
    assert "driver" not in to_json(plain)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"driver": None, "cell": cell(queues=2)}, ("cell.queues", "needs_driver")),
        ({"driver": None, "cell": cell(disks=2)}, ("cell.disks", "needs_driver")),
        ({"driver": None, "cell": cell(iothreads=2)}, ("cell.iothreads", "needs_driver")),
        ({"driver": {"vcpus": 0}}, ("driver.vcpus", "invalid_value")),
        ({"driver": {"cpus": 1}}, ("driver.cpus", "unknown_field")),
        ({"cell": cell(block_size_bytes=1000)}, ("cell.block_size_bytes", "invalid_value")),
        ({"values": {"virtio_blk_queues": 2}}, ("values.virtio_blk_queues", "not_settable")),
        ({"values": {"virtio_blk_queue_size": 64}, "cell": cell(iodepth=65)},
         ("cell.iodepth", "too_deep")),
        ({"cell": cell(iodepth=64, numjobs=17)}, ("cell.iodepth", "too_deep")),
        ({"cell": cell(iodepth=1024, block_size_bytes="4Mi")},
         ("cell.block_size_bytes", "too_large")),
        ({"iothread": False, "cell": cell(iothreads=2, queues=2)},
         ("cell.iothreads", "needs_iothread")),
        ({"cell": cell(iothreads=4, queues=3)}, ("cell.queues", "too_few")),
    ],
)  # fmt: skip
def test_refusals(changes: dict[str, Any], found: tuple[str, str]) -> None:
    assert found in problems(**changes)


def test_a_running_vm_has_a_guest_of_its_own() -> None:
    vm = "5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10"
    assert ("driver", "one_of") in problems(target={"vm": vm})
    assert ("cell.node", "not_a_choice") in problems(cell=cell(node="vm"))


@given(st.integers(1, 16), st.integers(1, 16))
def test_every_iothread_has_work_and_every_disk_an_iothread(disks: int, iothreads: int) -> None:
    dealt = iothreads_of_disks(replace(CELL, disks=disks, iothreads=iothreads))
    assert len(dealt) == disks
    assert all(dealt)
    used = [each for disk in dealt for each in disk]
    assert set(used) == set(range(iothreads))
    assert len(used) == max(disks, iothreads)  # none has two where it can have one


def test_queues_have_room_for_what_is_under_way() -> None:
    assert at_once_in_a_queue(CELL) == 2 * 64
    assert queue_size(CELL, None) == 256
    assert queue_size(replace(CELL, numjobs=64), None) == 512
    assert queue_size(CELL, 128) == 128


def test_a_matrix_of_it_chooses_kvm_and_one_without_a_guest_cannot() -> None:
    arms = [{"name": "a"}]
    block = {"driver": {"vcpus": 2}, "disks": [4], "iothreads": [1, 4]}
    made = campaign_of(matrix_of({"name": "x", "arms": arms, "block": block, "kvm": False}))
    assert made.kvm is False
    assert [cell.name for cell in made.cells] == [
        "null-co-randread-4k-1-1-4disks", "null-co-randread-4k-1-1-4disks-4iothreads",
    ]  # fmt: skip
    with pytest.raises(InvalidInput) as refused:
        campaign_of(matrix_of({"name": "x", "arms": arms, "block": {}, "kvm": False}))
    assert [(p.field, p.code) for p in refused.value.problems] == [("kvm", "not_for_kind")]

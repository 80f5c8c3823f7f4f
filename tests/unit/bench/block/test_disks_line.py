"""The command line of a QEMU whose guest loads its disks."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from uuid import UUID

from vmtune.bench.block.disks_line import DiskFiles, disks_line, guest_load, memory_mib
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.guest_driver import GuestDriver
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind

VM = UUID(int=1)
FILES = DiskFiles(
    Path("/q"), None, Path("/k"), Path("/f"), Path("/f/m"), Path("/f/o"),
    (Path("/s/a,b0"), Path("/s/a,b1")),
)  # fmt: skip


def line(cell: BlockCell, *, iothread: bool = True, kvm: bool = True) -> list[str]:
    driver = GuestDriver(vcpus=3)
    values = {"virtio_blk_queue_size": 512}
    scenario = BlockScenario(cell, iothread=iothread, values=values, driver=driver)
    return disks_line(FILES, scenario, driver, VM, kvm=kvm)


def after(words: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(words) if name == option]


def disks(words: list[str]) -> list[dict[str, object]]:
    return [json.loads(each) for each in after(words, "-device") if each.startswith("{")]


def test_a_disk_on_each_iothread() -> None:
    cell = BlockCell(NodeKind.QCOW2, IoPattern.RANDRW, 4096, 8, 2, disks=2, queues=2, iothreads=2)
    words = line(cell)
    assert after(words, "-object") == ["iothread,id=iothread0", "iothread,id=iothread1"]
    assert [each["iothread"] for each in disks(words)] == ["iothread0", "iothread1"]
    assert all((each["num-queues"], each["queue-size"]) == (2, 512) for each in disks(words))
    nodes = after(words, "-blockdev")
    assert "filename=/s/a,,b1" in nodes[2]
    assert nodes[3] == "qcow2,node-name=vmtune-node1,file=vmtune-file1"
    assert "-S" in words
    assert after(words, "-smp") == ["3"]


def test_the_queues_of_one_disk_on_several() -> None:
    cell = BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, 8, 4, queues=4, iothreads=3)
    (disk,) = disks(line(cell))
    assert disk["iothread-vq-mapping"] == [{"iothread": f"iothread{n}"} for n in range(3)]
    assert "iothread" not in disk


def test_the_main_loop_and_tcg() -> None:
    words = line(BlockCell(NodeKind.NULL, IoPattern.READ), iothread=False, kvm=False)
    (disk,) = disks(words)
    assert not {"iothread", "iothread-vq-mapping"} & disk.keys()
    assert after(words, "-object") == []
    assert after(words, "-accel") == ["tcg"]
    assert after(words, "-blockdev") == [
        f"null-co,node-name=vmtune-node0,size={1 << 30},read-zeroes=on"
    ]


def test_the_load_follows_from_the_combination() -> None:
    driver = GuestDriver(interrupts=True)
    for rw, share, sequential in (
        (IoPattern.READ, 0, True), (IoPattern.WRITE, 100, True), (IoPattern.RW, 50, True),
        (IoPattern.RANDREAD, 0, False), (IoPattern.RANDWRITE, 100, False),
        (IoPattern.RANDRW, 50, False),
    ):  # fmt: skip
        scenario = BlockScenario(BlockCell(NodeKind.NULL, rw, 8192, 4, 2), driver=driver)
        load = guest_load(scenario, driver)
        assert (load.write_percent, load.sequential) == (share, sequential)
        assert (load.depth, load.jobs, load.block_bytes) == (4, 2, 8192)
        assert (load.ramp_ms, load.run_ms, load.interrupts) == (2000, 10_000, True)


def test_the_guest_has_memory_for_all_that_is_under_way() -> None:
    small = BlockCell(NodeKind.NULL, IoPattern.READ)
    large = BlockCell(NodeKind.NULL, IoPattern.READ, 1 << 20, 64, 4)
    assert memory_mib(large) - memory_mib(small) >= 255

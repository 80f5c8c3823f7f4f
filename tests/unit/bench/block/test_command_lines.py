"""The command lines of a block benchmark: what each part of a scenario becomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from vmtune.bench.block.command_lines import BlockFiles, fio_line, qemu_line, writes
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.hypervisor.qemu.block_export import Export

CELL = BlockCell(NodeKind.NULL, IoPattern.RANDRW, 4096, 64, 16)
SCENARIO = BlockScenario(CELL, size_bytes=1 << 30, runtime_s=10, ramp_s=2)
FILES = BlockFiles(Path("/bin/qemu"), None, Path("/r/q/qemu.sock"), Path("/r/own"))


def line(scenario: BlockScenario, node: Path | None = None) -> list[str]:
    return qemu_line(replace(FILES, node=node), scenario, UUID(int=1))


def test_a_null_node_on_an_iothread() -> None:
    words = line(SCENARIO)
    assert words[0] == "/bin/qemu"
    assert "-S" in words  # no guest takes CPU time
    assert "iothread,id=iothread0" in words
    assert "null-co,node-name=vmtune-node,size=1073741824,read-zeroes=on" in words
    assert "unix:/r/q/qemu.sock,server=on,wait=off" in words
    assert not any("virtio" in word for word in words)


def test_on_the_main_loop_there_is_no_iothread() -> None:
    assert not any("iothread" in word for word in line(replace(SCENARIO, iothread=False)))


def test_a_file_is_named_with_its_commas() -> None:
    scenario = replace(SCENARIO, cell=replace(CELL, node=NodeKind.RAW))
    (node,) = [word for word in line(scenario, Path("/a,b/node")) if word.startswith("file,")]
    assert node == "file,node-name=vmtune-file,filename=/a,,b/node,cache.no-flush=on"


@pytest.mark.parametrize(
    ("values", "device"),
    [
        ({"virtio_blk_queues": 4}, "num-queues=4"),
        ({"virtio_blk_queue_size": 128}, "queue-size=128"),
        ({"virtio_blk_queues": 4, "virtio_blk_queue_size": 128}, "num-queues=4,queue-size=128"),
    ],
)
def test_queues_are_a_disks(values: dict[str, int], device: str) -> None:
    assert f"virtio-blk-pci,drive=vmtune-disk,{device}" in line(replace(SCENARIO, values=values))


def test_fio_is_told_all_of_the_cell() -> None:
    words = fio_line(SCENARIO, "nbd+unix:///x?socket=/y", Path("/r/fio.json"))
    assert {
        "--ioengine=nbd", "--uri=nbd+unix:///x?socket=/y", "--rw=randrw", "--bs=4096",
        "--iodepth=64", "--numjobs=16", "--runtime=10s", "--ramp_time=2s", "--time_based",
        "--thread", "--group_reporting", "--output=/r/fio.json",
    } <= set(words)  # fmt: skip


def test_only_what_writes_gets_a_writable_export() -> None:
    found = {rw.value for rw in IoPattern if writes(replace(SCENARIO, cell=replace(CELL, rw=rw)))}
    assert found == {"write", "randwrite", "rw", "randrw"}


def test_a_sockets_path_is_quoted_in_a_uri() -> None:
    export = Export("n", Path("/run/a b?c&d/vmtune-nbd.sock"))
    assert export.uri == "nbd+unix:///vmtune-export?socket=/run/a%20b%3Fc%26d/vmtune-nbd.sock"

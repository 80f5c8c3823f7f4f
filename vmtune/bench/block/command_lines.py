"""The command lines of a block benchmark's QEMU and of fio. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from vmtune.bench.model.scenario.block import VIRTIO_QUEUE_SIZE, VIRTIO_QUEUES, BlockScenario
from vmtune.bench.model.scenario.matrix_cells import NodeKind
from vmtune.hypervisor.qemu.block_allowlist import FILE, NODE, OWN

IOTHREAD = "iothread0"
"""Called as libvirt would number it; the settings of iothreads go to it."""
_DISK = f"{OWN}disk"


@dataclass(frozen=True, slots=True)
class BlockFiles:
    """What a QEMU of this benchmark is given.

    :param monitor: a socket that it is to make, for the driver; *own* one for the run itself.
    :param node: the file behind the node; None for a node without one.
    """

    program: Path
    data_folder: Path | None
    monitor: Path
    own: Path
    node: Path | None = None


def qemu_line(files: BlockFiles, scenario: BlockScenario, uuid: UUID) -> list[str]:
    """A QEMU without a guest: its vCPU never starts, so that all CPU time is the load's."""
    return [
        str(files.program),
        *(("-L", str(files.data_folder)) if files.data_folder else ()),
        *("-name", "guest=bench-block,debug-threads=on", "-uuid", str(uuid)),
        *("-machine", "pc", "-accel", "tcg", "-S", "-m", "64M"),
        *("-nodefaults", "-no-user-config", "-display", "none"),
        *(("-object", f"iothread,id={IOTHREAD}") if scenario.iothread else ()),
        *_node(files.node, scenario),
        *_disk(scenario),
        *("-qmp", f"unix:{_word(files.monitor)},server=on,wait=off"),
        *("-qmp", f"unix:{_word(files.own)},server=on,wait=off"),
    ]


def _node(file: Path | None, scenario: BlockScenario) -> tuple[str, ...]:
    """A null node, or the file on which the run puts the node's format."""
    if file is not None:
        # What is written is not needed later: no need to wait until it is on the disk.
        return ("-blockdev", f"file,node-name={FILE},filename={_word(file)},cache.no-flush=on")
    assert scenario.cell.node is NodeKind.NULL, "every other node has a file"
    # Without read-zeroes it would answer with what the memory held before.
    size = f"size={scenario.size_bytes}"
    return ("-blockdev", f"null-co,node-name={NODE},{size},read-zeroes=on")


def _disk(scenario: BlockScenario) -> tuple[str, ...]:
    """An unused disk, whose queues make QEMU's pool of coroutines as large as a VM's."""
    queues = scenario.values.get(VIRTIO_QUEUES)
    size = scenario.values.get(VIRTIO_QUEUE_SIZE)
    if queues is None and size is None:
        return ()
    device = f"virtio-blk-pci,drive={_DISK}"
    device += f",num-queues={queues}" if queues is not None else ""
    device += f",queue-size={size}" if size is not None else ""
    return ("-blockdev", f"null-co,node-name={_DISK},size=1048576", "-device", device)


def writes(scenario: BlockScenario) -> bool:
    """Whether the load writes to the node."""
    return scenario.cell.rw.writes


def fio_line(scenario: BlockScenario, uri: str, output: Path) -> list[str]:
    """fio as threads of one process: one connection for each job."""
    return [
        "fio",
        "--name=load",
        "--ioengine=nbd",
        f"--uri={uri}",
        *fio_counts(scenario),
        "--output-format=json",
        f"--output={output}",
    ]


def fio_counts(scenario: BlockScenario) -> list[str]:
    """fio's options for a load, on any place and target."""
    cell = scenario.cell
    return [
        f"--rw={cell.rw}",
        f"--bs={cell.block_size_bytes}",
        f"--iodepth={cell.iodepth}",
        f"--numjobs={cell.numjobs}",
        "--thread",
        "--time_based",
        f"--runtime={scenario.runtime_s}s",
        f"--ramp_time={scenario.ramp_s}s",
        "--norandommap",  # which would take memory by the node's size
        "--group_reporting",
        "--unified_rw_reporting=both",
        "--eta=never",
    ]


def _word(path: Path) -> str:
    """A path among QEMU's key=value words, which commas end."""
    return str(path).replace(",", ",,")

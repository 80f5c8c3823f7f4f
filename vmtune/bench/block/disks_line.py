"""The command line of a QEMU whose guest loads its disks. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from vmtune.bench.model.scenario.block import VIRTIO_QUEUE_SIZE, BlockScenario
from vmtune.bench.model.scenario.guest_driver import (
    GuestDriver,
    iothreads_of_disks,
    queue_size,
    sequential,
    write_percent,
)
from vmtune.bench.model.scenario.matrix_cells import BlockCell, NodeKind
from vmtune.hypervisor.qemu.block_allowlist import FILE, NODE
from vmtune.model.guest_io import GuestLoad

IOTHREAD = "iothread"
"""And a number from 0: called as libvirt would; settings of iothreads go to all of them."""
BEAT, SERIAL = "beat", "serial"
"""Names of the sockets in the run's folder on which the run listens to the guest."""
BEAT_PORT = 0xE9
TELLS_EVERY_MS = 250
_MIB = 1 << 20
_OWN_BYTES = 48 * _MIB
"""Of the guest's memory: firmware, program, histograms."""
_PLACE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class DiskFiles:
    """What the QEMU is given.

    :param kernel: the guest's program.
    :param folder: of the run, with its sockets.
    :param monitor: a socket that it is to make, for the driver; *own* one for the run itself.
    :param nodes: the file behind each disk; none for nodes without one.
    """

    program: Path
    data_folder: Path | None
    kernel: Path
    folder: Path
    monitor: Path
    own: Path
    nodes: Sequence[Path] = ()


def guest_load(scenario: BlockScenario, driver: GuestDriver) -> GuestLoad:
    """What the guest is to do."""
    cell = scenario.cell
    return GuestLoad(
        depth=cell.iodepth,
        jobs=cell.numjobs,
        block_bytes=cell.block_size_bytes,
        write_percent=write_percent(cell.rw),
        sequential=sequential(cell.rw),
        ramp_ms=scenario.ramp_s * 1000,
        run_ms=scenario.runtime_s * 1000,
        interrupts=driver.interrupts,
        beat_ms=TELLS_EVERY_MS,
    )


def disks_line(
    files: DiskFiles, scenario: BlockScenario, driver: GuestDriver, uuid: UUID, *, kvm: bool
) -> list[str]:
    """A QEMU whose vCPUs wait to be started."""
    cell = scenario.cell
    return [
        str(files.program),
        *(("-L", str(files.data_folder)) if files.data_folder else ()),
        *("-name", "guest=bench-block,debug-threads=on", "-uuid", str(uuid)),
        *("-machine", "pc", "-accel", "kvm" if kvm else "tcg", "-S"),
        # Not the host's own model: some nested KVMs cannot set all its MSRs.
        *("-cpu", "qemu64", "-m", f"{memory_mib(cell)}M", "-smp", str(driver.vcpus)),
        *("-nodefaults", "-no-user-config", "-display", "none"),
        *("-kernel", str(files.kernel), "-append", guest_load(scenario, driver).command_line()),
        *("-chardev", f"socket,id={SERIAL},path={_word(files.folder / SERIAL)}"),
        *("-serial", f"chardev:{SERIAL}"),
        *("-chardev", f"socket,id={BEAT},path={_word(files.folder / BEAT)}"),
        *("-device", f"isa-debugcon,chardev={BEAT},iobase={BEAT_PORT:#x}"),
        *_iothreads(scenario),
        *_disks(files, scenario),
        *("-qmp", f"unix:{_word(files.monitor)},server=on,wait=off"),
        *("-qmp", f"unix:{_word(files.own)},server=on,wait=off"),
    ]


def format_line(
    program: Path, data_folder: Path | None, files: Sequence[Path], own: Path
) -> list[str]:
    """A QEMU that only puts a format on files: each is a node called as :func:`file_node` says."""
    nodes = [
        word
        for number, file in enumerate(files)
        for word in ("-blockdev", _file(file, file_node(number)))
    ]
    return [
        str(program),
        *(("-L", str(data_folder)) if data_folder else ()),
        *("-machine", "none", "-nodefaults", "-no-user-config", "-display", "none"),
        *nodes,
        *("-qmp", f"unix:{_word(own)},server=on,wait=off"),
    ]


def file_node(number: int) -> str:
    """The node of a disk's file."""
    return f"{FILE}{number}"


def memory_mib(cell: BlockCell) -> int:
    """The guest's memory: what is under way, and its own."""
    at_once = cell.numjobs * cell.iodepth
    needed = _OWN_BYTES + at_once * (cell.block_size_bytes + _PLACE_BYTES)
    needed += cell.disks * cell.queues * _MIB // 8
    return -(-needed // _MIB)


def _iothreads(scenario: BlockScenario) -> list[str]:
    count = scenario.cell.iothreads if scenario.iothread else 0
    return [word for n in range(count) for word in ("-object", f"iothread,id={IOTHREAD}{n}")]


def _disks(files: DiskFiles, scenario: BlockScenario) -> list[str]:
    words: list[str] = []
    cell = scenario.cell
    size = queue_size(cell, scenario.values.get(VIRTIO_QUEUE_SIZE))
    for number, iothreads in enumerate(iothreads_of_disks(cell)):
        node = f"{NODE}{number}"
        words += _node(files, scenario, number, node)
        device: dict[str, object] = {
            "driver": "virtio-blk-pci",
            "id": f"virtio-disk{number}",
            "drive": node,
            "num-queues": cell.queues,
            "queue-size": size,
        }
        if scenario.iothread and len(iothreads) == 1:
            device["iothread"] = f"{IOTHREAD}{iothreads[0]}"
        elif scenario.iothread:
            device["iothread-vq-mapping"] = [{"iothread": f"{IOTHREAD}{n}"} for n in iothreads]
        words += ["-device", json.dumps(device)]
    return words


def _node(files: DiskFiles, scenario: BlockScenario, number: int, node: str) -> list[str]:
    kind = scenario.cell.node
    if kind is NodeKind.NULL:
        # Without read-zeroes it would answer with what the memory held before.
        size = f"size={scenario.size_bytes}"
        return ["-blockdev", f"null-co,node-name={node},{size},read-zeroes=on"]
    file = file_node(number)
    return [
        *("-blockdev", _file(files.nodes[number], file)),
        *("-blockdev", f"{kind.value},node-name={node},file={file}"),
    ]


def _file(file: Path, node: str) -> str:
    # What is written is not needed later: no need to wait until it is on the disk.
    return f"file,node-name={node},filename={_word(file)},cache.no-flush=on"


def _word(path: Path) -> str:
    """A path among QEMU's key=value words, which commas end."""
    return str(path).replace(",", ",,")

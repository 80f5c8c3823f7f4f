"""What a matrix of each kind measures: a list for each dimension, every combination a cell."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

from annotated_types import Interval, MaxLen

from vmtune.bench.model.scenario.block import (
    LEAST_NODE_BYTES,
    MAX_LOAD_S,
    MAX_NODE_BYTES,
)
from vmtune.bench.model.scenario.block_target import LiveTarget
from vmtune.bench.model.scenario.boot import why_no_remaps, why_not
from vmtune.bench.model.scenario.guest_driver import GuestDriver
from vmtune.bench.model.scenario.matrix_cells import (
    LEAST_BLOCK_BYTES,
    MAX_BLOCK_BYTES,
    MAX_BRIDGES,
    MAX_DEVICES,
    MAX_DISKS,
    MAX_IODEPTH,
    MAX_IOTHREADS,
    MAX_JOBS,
    MAX_QUEUES,
    MAX_REMAPS,
    MAX_SPINNING,
    Accelerator,
    BlockCell,
    BootCell,
    BootGuest,
    Firmware,
    IoPattern,
    NodeKind,
    SrcuCell,
)
from vmtune.bench.model.scenario.parts import (
    GIB,
    LEAST_MEMORY_BYTES,
    MIB,
)
from vmtune.bench.model.scenario.srcu import MAX_SRCU_SECONDS, MOST_UPDATES
from vmtune.documents.dataclass_json import Written, decoder
from vmtune.documents.strict import Reader, short
from vmtune.units import Unit

_MAX_CHOICES = 50
_MAX_SECONDS = 3600


def _several(each: Any) -> Written:  # any type
    """A list: at least one, each once."""
    decode = decoder(Annotated[tuple[each, ...], MaxLen(_MAX_CHOICES)])

    def read_several(reader: Reader, raw: object, where: str) -> object:
        before = reader.refused
        found = decode(reader, raw, where)
        if reader.refused == before and not found:
            reader.refuse(where, "missing", "the list is empty", "give at least one")
        elif reader.refused == before and len(set(found)) < len(found):
            reader.refuse(where, "duplicate", f"{short(raw)} has one twice", "leave one out")
        return found

    return Written(read_several)


def _count(least: int, most: int, unit: Unit = Unit.NONE) -> Any:  # a type
    return Annotated[int, Interval(ge=least, le=most), unit]


@dataclass(frozen=True, slots=True)
class BlockMatrix:
    """What the block benchmark measures.

    :param iothread: requests are handled by an iothread, else by the main loop.
    :param size_bytes: of the node.
    :param ramp_s: load before the figures count.
    :param driver: the project's guest loads disks; *disks*, *queues* and *iothreads* are of these.
    :param target: a VM that runs, which is measured in the place of a QEMU without a guest.
    """

    nodes: Annotated[tuple[NodeKind, ...], _several(NodeKind)] = (NodeKind.NULL,)
    rw: Annotated[tuple[IoPattern, ...], _several(IoPattern)] = (IoPattern.RANDREAD,)
    block_size_bytes: Annotated[
        tuple[int, ...], _several(_count(LEAST_BLOCK_BYTES, MAX_BLOCK_BYTES, Unit.BYTES))
    ] = (4096,)
    iodepth: Annotated[tuple[int, ...], _several(_count(1, MAX_IODEPTH))] = (1,)
    numjobs: Annotated[tuple[int, ...], _several(_count(1, MAX_JOBS))] = (1,)
    size_bytes: Annotated[int, Interval(ge=LEAST_NODE_BYTES, le=MAX_NODE_BYTES), Unit.BYTES] = GIB
    runtime_s: Annotated[int, Interval(ge=1, le=MAX_LOAD_S)] = 10
    ramp_s: Annotated[int, Interval(ge=0, le=MAX_LOAD_S)] = 2
    iothread: bool = True
    target: LiveTarget | None = None
    disks: Annotated[tuple[int, ...], _several(_count(1, MAX_DISKS))] = (1,)
    queues: Annotated[tuple[int, ...], _several(_count(1, MAX_QUEUES))] = (1,)
    iothreads: Annotated[tuple[int, ...], _several(_count(1, MAX_IOTHREADS))] = (1,)
    driver: GuestDriver | None = None

    @property
    def cells(self) -> tuple[BlockCell, ...]:
        """Every combination, the first list outermost."""
        return tuple(
            BlockCell(*each)
            for each in product(
                self.nodes,
                self.rw,
                self.block_size_bytes,
                self.iodepth,
                self.numjobs,
                self.disks,
                self.queues,
                self.iothreads,
            )
        )


@dataclass(frozen=True, slots=True)
class BootMatrix:
    """What the boot benchmark measures.

    :param count_regions: count the updates of KVM's memory regions by QEMU's trace events.
    :param max_seconds: a boot that takes longer is ended, and counts as not converged.
    """

    guests: Annotated[tuple[BootGuest, ...], _several(BootGuest)] = (BootGuest.PROJECT,)
    firmware: Annotated[tuple[Firmware, ...], _several(Firmware)] = (Firmware.SEABIOS,)
    accelerators: Annotated[tuple[Accelerator, ...], _several(Accelerator)] = (Accelerator.KVM,)
    vcpus: Annotated[tuple[int, ...], _several(_count(1, 1024))] = (1,)
    memory_bytes: Annotated[
        tuple[int, ...], _several(_count(LEAST_MEMORY_BYTES, 1 << 44, Unit.BYTES))
    ] = (512 * MIB,)
    count_regions: bool = True
    max_seconds: Annotated[int, Interval(ge=1, le=_MAX_SECONDS)] = 300
    acpi: Annotated[tuple[bool, ...], _several(bool)] = (True,)
    bridges: Annotated[tuple[int, ...], _several(_count(0, MAX_BRIDGES))] = (0,)
    devices: Annotated[tuple[int, ...], _several(_count(0, MAX_DEVICES))] = (0,)
    remaps: Annotated[tuple[int, ...], _several(_count(0, MAX_REMAPS))] = (0,)

    @property
    def cells(self) -> tuple[BootCell, ...]:
        """Every combination that can be, the first list outermost."""
        combined = (
            BootCell(*each)
            for each in product(
                self.guests,
                self.firmware,
                self.accelerators,
                self.vcpus,
                self.memory_bytes,
                self.acpi,
                self.bridges,
                self.devices,
                self.remaps,
            )
        )
        return tuple(
            cell
            for cell in combined
            if not why_not(cell.guest, cell.firmware) and not why_no_remaps(cell)
        )


@dataclass(frozen=True, slots=True)
class SrcuMatrix:
    """What the benchmark of updates of memory maps measures.

    :param vcpus: how many spin meanwhile.
    :param updates: additions and deletions together.
    :param max_seconds: no update is begun after that.
    """

    vcpus: Annotated[tuple[int, ...], _several(_count(1, MAX_SPINNING))] = (1,)
    updates: Annotated[int, Interval(ge=2, le=MOST_UPDATES)] = 2000
    max_seconds: Annotated[int, Interval(ge=1, le=MAX_SRCU_SECONDS)] = 30

    @property
    def cells(self) -> tuple[SrcuCell, ...]:
        """Each number of vCPUs."""
        return tuple(map(SrcuCell, self.vcpus))

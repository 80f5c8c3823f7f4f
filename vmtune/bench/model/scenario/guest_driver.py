"""Disks of a QEMU that is started for the measurement, loaded from inside its guest. Pure.

The guest is the project's own, and its virtio-blk driver makes the requests
(``vmtune/lab/guest/io.h``): all of the way is measured that a guest's request takes, but for an
operating system.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.errors import Problem
from vmtune.model.guest_io import MAX_GUEST_DEPTH, SECTOR_BYTES

MAX_DRIVER_VCPUS = 64
MAX_BUFFER_BYTES = 2 << 30
"""What all requests under way have of the guest's memory: its program is below 4 GiB."""
USUAL_QUEUE_SIZE = 256
"""Places of a queue, where neither the load needs more nor a value says otherwise."""
_HALF = 50


@dataclass(frozen=True, slots=True)
class GuestDriver:
    """The guest that loads the disks.

    :param vcpus: queues are dealt out to them in turn.
    :param interrupts: a vCPU without an answer halts until its disk interrupts, as an operating
        system does; else it looks for answers, and uses up a CPU.
    """

    vcpus: Annotated[int, Interval(ge=1, le=MAX_DRIVER_VCPUS)] = 1
    interrupts: bool = False


def write_percent(rw: IoPattern) -> int:
    """The share of requests that write."""
    mixed = rw in (IoPattern.RW, IoPattern.RANDRW)
    return _HALF if mixed else 100 if rw.writes else 0


def sequential(rw: IoPattern) -> bool:
    """Whether a queue's requests are for one block after another."""
    return rw in (IoPattern.READ, IoPattern.WRITE, IoPattern.RW)


def at_once_in_a_queue(cell: BlockCell) -> int:
    """Requests under way in the fullest queue."""
    return -(-cell.numjobs // (cell.disks * cell.queues)) * cell.iodepth


def queue_size(cell: BlockCell, wanted: object) -> int:
    """The places of each queue: a power of two.

    :param wanted: what a value says; else enough for the load.
    """
    if isinstance(wanted, int):
        return wanted
    size = USUAL_QUEUE_SIZE
    while size < at_once_in_a_queue(cell):
        size *= 2
    return size


def iothreads_of_disks(cell: BlockCell) -> Sequence[Sequence[int]]:
    """The iothreads of each disk: where there are fewer disks than iothreads, several, to whom
    its queues are dealt out; else one, which disks may share."""
    if cell.disks >= cell.iothreads:
        return [[disk % cell.iothreads] for disk in range(cell.disks)]
    return [list(range(disk, cell.iothreads, cell.disks)) for disk in range(cell.disks)]


def problems_of(
    driver: GuestDriver | None,
    cell: BlockCell,
    *,
    iothread: bool,
    has_target: bool,
    values: Mapping[str, object],
) -> Iterator[Problem]:
    """What a scenario with, or without, the guest's driver cannot have.

    :param iothread: as in the scenario.
    """
    axes = {"disks": cell.disks, "queues": cell.queues, "iothreads": cell.iothreads}
    if driver is None:
        for name, count in axes.items():
            if count != 1:
                yield Problem(f"cell.{name}", "needs_driver",
                              f"there is one of them where fio loads an export, and not {count}",
                              "give driver, so that a guest loads disks")  # fmt: skip
        return
    if has_target:
        yield Problem("driver", "one_of", "a running VM has a guest of its own",
                      "leave out driver or target")  # fmt: skip
    if cell.node is NodeKind.VM and not has_target:
        yield Problem("cell.node", "not_a_choice", "the disks are made for the measurement",
                      "use null-co, raw or qcow2")  # fmt: skip
    if cell.block_size_bytes % SECTOR_BYTES:
        yield Problem("cell.block_size_bytes", "invalid_value",
                      f"{cell.block_size_bytes} is not a multiple of {SECTOR_BYTES}",
                      "disks have sectors of 512 bytes")  # fmt: skip
    if "virtio_blk_queues" in values:
        yield Problem("values.virtio_blk_queues", "not_settable",
                      "the queues of the disks are the combination's",
                      "set cell.queues")  # fmt: skip
    yield from _fits(cell, queue_size(cell, values.get("virtio_blk_queue_size")))
    if not iothread and cell.iothreads != 1:
        yield Problem("cell.iothreads", "needs_iothread", "the main loop does the work",
                      "set iothread to true, or leave out iothreads")  # fmt: skip
    several = max(map(len, iothreads_of_disks(cell)))
    if several > cell.queues:
        yield Problem("cell.queues", "too_few",
                      f"the queues of a disk are dealt out to {several} iothreads, and it has "
                      f"{cell.queues}", "take more queues, or more disks")  # fmt: skip


def _fits(cell: BlockCell, places: int) -> Iterator[Problem]:
    wanted = at_once_in_a_queue(cell)
    if wanted > min(places, MAX_GUEST_DEPTH):
        yield Problem("cell.iodepth", "too_deep",
                      f"{wanted} requests are under way in one queue, which has "
                      f"{min(places, MAX_GUEST_DEPTH)} places",
                      "take fewer, or more queues or disks")  # fmt: skip
    if cell.numjobs * cell.iodepth * cell.block_size_bytes > MAX_BUFFER_BYTES:
        yield Problem("cell.block_size_bytes", "too_large",
                      "what is under way at once takes more than 2 GiB of the guest",
                      "take smaller or fewer requests")  # fmt: skip

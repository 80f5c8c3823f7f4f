"""QEMU's pool of coroutines: how large it gets, and what that costs in memory maps. Pure.

Each request to a disk runs in a coroutine, whose stack is a memory map with a guard page below:
two of the maps that ``vm.max_map_count`` allows a process. QEMU keeps the stacks of ended
coroutines for the next ones. At the limit the next stack ends QEMU, with ``failed to allocate
memory for stack`` or ``failed to set up stack guard page``.

Sources: QEMU util/qemu-coroutine.c and hw/block/virtio-blk.c of 7.2 and 10.0. The pool's sizes
are in neither QMP nor QOM, so they are computed here and the maps are counted in /proc.

The worst case rests on when QEMU makes a stack: only where the thread's own pool and the shared
one have none. So there are never more than are in use at once, and what the other threads keep
for themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from vmtune.model.host.facts import MemoryMaps, VmFacts
from vmtune.model.versions import Version

MAPS_PER_STACK = 2
"""The stack, and the guard page below it. A coroutine has one stack, and two where QEMU was built
with SafeStack."""
MAPS_PER_WORKER = 4
"""A thread's stack and guard page, and the two maps of a heap of its own (glibc malloc)."""
WARNING_PERCENT = 80
"""Of the limit, for the worst case: above it, warn."""
BLOCKER_PERCENT = 90
"""Of the limit, for the maps that there are: above it, leave QEMU alone."""
OTHER_COROUTINES = 64
"""For what is no request of a guest's disk: the monitor, a migration, jobs."""
OTHER_MAPS = 1000
"""Libraries, heaps, guest memory and threads of a QEMU that cannot be examined. A small one has
some 300; QEMU 9 and later mean to leave 5,000 for them (util/qemu-coroutine.c)."""
_DEFAULT_WORKERS = 64  # util/thread-pool.c, for each event loop
_DEFAULT_QUEUE_SIZE = 256  # hw/block/virtio-blk.c
_STEP = 1024


class Design(StrEnum):
    """How a QEMU keeps the stacks of ended coroutines."""

    PER_THREAD = "one pool for each thread"
    BATCHES = "one shared pool of batches"


RELEASES = (
    (Version(0), Design.PER_THREAD),
    (Version(9), Design.BATCHES),
)
"""Since which release a QEMU has which design, the newest last. 9.0: commit 86a637e48104. Some
bugfix releases of 8.2 took it over: for them the older design is assumed, whose worst case is the
larger one.

None of them keeps its pool within vm.max_map_count. From 9.0 on QEMU means to, and reads it once at
its start (util/qemu-coroutine.c: get_global_pool_hard_max_size), but hands qemu_strtoi no place for
the end of the number, which then refuses the newline behind it (util/cutils.c: check_strtox_error):
so it has no such limit. Read in the source of 10.0.13, and seen of 10.0.2: started at a limit of
5,000, where it means to keep no shared pool, it kept 771 stacks after a load, as it did at 65,530
(769)."""


def design_of(qemu: Version) -> Design:
    """How a QEMU keeps the stacks of ended coroutines."""
    return next(design for since, design in reversed(RELEASES) if qemu >= since)


@dataclass(frozen=True, slots=True)
class Disk:
    """The virtqueues of a virtio-blk disk.

    :param size: descriptors of each queue: requests that it can hold.
    """

    queues: int
    size: int = _DEFAULT_QUEUE_SIZE

    @property
    def requests(self) -> int:
        """The most that the guest can have in flight."""
        return self.queues * self.size


@dataclass(frozen=True, slots=True)
class Geometry:
    """The properties of a VM on which the pool's size depends.

    :param iothreads: they and the main loop run coroutines. vCPUs hardly do: disks with an
        ioeventfd, which is the default, leave requests to the others.
    :param workers: most threads of all thread pools together, which come and go.
    :param stacks: of each coroutine.
    """

    qemu: Version
    disks: tuple[Disk, ...] = ()
    iothreads: int = 0
    workers: int = 0
    stacks: int = 1

    @property
    def threads(self) -> int:
        """Threads that run coroutines."""
        return 1 + self.iothreads

    @property
    def requests(self) -> int:
        """The most requests that its guest can have in flight."""
        return sum(disk.requests for disk in self.disks)

    @property
    def demand(self) -> int:
        """What its disks add to the pool's soft limit: half of their descriptors each
        (hw/block/virtio-blk.c: virtio_blk_device_realize)."""
        return sum(disk.requests // 2 for disk in self.disks)


@dataclass(frozen=True, slots=True)
class PoolModel:
    """How large the pool of a VM gets, in coroutines.

    :param soft_limit: what QEMU lets the pool grow to, for its disks.
    :param max_pooled: kept when nothing is in flight, in the shared pool and in the threads'.
    :param most: in use and kept, in the worst case: all that the guest can have in flight at
        once, and what other threads keep meanwhile.
    :param workers: most threads of all thread pools.
    :param stacks: of each coroutine.
    """

    design: Design
    threads: int
    requests: int
    soft_limit: int
    max_pooled: int
    most: int
    workers: int
    stacks: int = 1

    def max_maps(self, other_maps: int = OTHER_MAPS) -> int:
        """The most maps that the process will have.

        :param other_maps: those that are no coroutine's.
        """
        workers = MAPS_PER_WORKER * self.workers
        return other_maps + MAPS_PER_STACK * self.stacks * self.most + workers

    def max_stack_bytes(self, stack_bytes: int) -> int:
        """Memory of all stacks in the worst case.

        :param stack_bytes: of each, as those that there are have it.
        """
        return self.stacks * self.most * stack_bytes


@dataclass(frozen=True, slots=True)
class _Sizes:
    """A design in numbers; *kept* is the most that one thread keeps for itself."""

    soft: int
    shared: int
    kept: int
    left_over: int


def _per_thread(geometry: Geometry) -> _Sizes:
    """Up to 8.2: a thread takes all that others have released, where that is more than 64, and
    keeps what it releases itself up to the limit."""
    limit = 64 + geometry.demand
    return _Sizes(soft=limit, shared=2 * limit, kept=2 * limit, left_over=64)


def _batches(geometry: Geometry) -> _Sizes:
    """From 9.0: batches of 128, of which a thread keeps two and the shared pool takes the rest;
    the batch with which it reaches its limit goes in whole."""
    batch = 128
    soft = batch + geometry.demand
    return _Sizes(soft=soft, shared=soft + batch - 1, kept=2 * batch, left_over=0)


_SIZES = {Design.PER_THREAD: _per_thread, Design.BATCHES: _batches}
assert set(_SIZES) == set(Design)


def pool_model(geometry: Geometry, requests: int | None = None) -> PoolModel:
    """The pool of a VM.

    :param requests: how many are in flight at most; None for all that the guest can have.
    """
    design = design_of(geometry.qemu)
    sizes = _SIZES[design](geometry)
    in_flight = (geometry.requests if requests is None else requests) + OTHER_COROUTINES
    return PoolModel(
        design=design,
        threads=geometry.threads,
        requests=geometry.requests,
        soft_limit=sizes.soft,
        max_pooled=sizes.shared + geometry.threads * sizes.kept,
        most=in_flight + sizes.left_over + (geometry.threads - 1) * sizes.kept,
        workers=geometry.workers,
        stacks=geometry.stacks,
    )


@dataclass(frozen=True, slots=True)
class Headroom:
    """A VM's memory maps, compared with what the host allows.

    :param maps: those that there are right now; None where they cannot be counted.
    :param other_maps: those of them that are no coroutine's, or else an estimate.
    :param limit: vm.max_map_count; None where the host cannot be seen.
    :param stack_bytes: memory of each stack right now; None where there is none.
    """

    model: PoolModel
    maps: MemoryMaps | None
    other_maps: int
    limit: int | None
    stack_bytes: int | None = None

    @property
    def max_stack_bytes(self) -> int | None:
        """Memory of the stacks in the worst case; None where no stack can be seen."""
        return None if self.stack_bytes is None else self.model.max_stack_bytes(self.stack_bytes)

    @property
    def max_maps(self) -> int:
        """The worst case."""
        return self.model.max_maps(self.other_maps)

    @property
    def left(self) -> int | None:
        """Maps that are left in the worst case: below 0, QEMU can end itself."""
        return None if self.limit is None else self.limit - self.max_maps

    @property
    def left_now(self) -> int | None:
        """Maps that are left right now."""
        if self.limit is None or self.maps is None:
            return None
        return self.limit - self.maps.total

    @property
    def needed_limit(self) -> int:
        """What vm.max_map_count has to be so that the worst case does not warn."""
        least = math.ceil(self.max_maps * 100 / WARNING_PERCENT)
        return math.ceil(least / _STEP) * _STEP

    @property
    def level(self) -> Level:
        """How near the limit it is."""
        if self.limit is None:
            return Level.UNKNOWN
        now = self.maps.total if self.maps else 0
        if now * 100 > self.limit * BLOCKER_PERCENT:
            return Level.BLOCKER
        return Level.WARNING if self.tight else Level.FINE

    @property
    def tight(self) -> bool:
        """The worst case is near the limit, or beyond it."""
        return self.limit is not None and self.max_maps * 100 > self.limit * WARNING_PERCENT


class Level(StrEnum):
    """How near a QEMU is to the limit of its memory maps."""

    FINE = "fine"
    WARNING = "warning"
    BLOCKER = "blocker"
    UNKNOWN = "unknown"


def geometry_of(vm: VmFacts, queues: int | None = None, queue_size: int | None = None) -> Geometry:
    """A VM's geometry.

    :param queues: of each disk, where that is to be changed; likewise *queue_size*.
    """
    return Geometry(
        qemu=vm.qemu,
        disks=tuple(_disks(vm, queues, queue_size)),
        iothreads=len(vm.iothreads),
        workers=_workers(vm, "main_loop", 1) + _workers(vm, "iothread", len(vm.iothreads)),
        stacks=vm.maps.stacks_per_coroutine if vm.maps else 1,
    )


def _disks(vm: VmFacts, queues: int | None, size: int | None) -> Iterable[Disk]:
    count, length = (
        vm.readings[name].parts if name in vm.readings else {}
        for name in ("virtio_blk_queues", "virtio_blk_queue_size")
    )
    for name in vm.virtio_disks:
        yield Disk(
            queues or int(count.get(name, 0)) or max(1, vm.vcpus),
            size or int(length.get(name, 0)) or _DEFAULT_QUEUE_SIZE,
        )


def _workers(vm: VmFacts, owner: str, loops: int) -> int:
    reading = vm.readings.get(f"{owner}_thread_pool_max")
    if reading is None:
        return loops * _DEFAULT_WORKERS
    if reading.parts:
        return sum(int(value) for value in reading.parts.values())
    return loops * (_DEFAULT_WORKERS if reading.value is None else int(reading.value))


def headroom(
    vm: VmFacts,
    limit: int | None,
    queues: int | None = None,
    queue_size: int | None = None,
) -> Headroom:
    """A VM's maps against the host's limit, as it runs or with other queues."""
    model = pool_model(geometry_of(vm, queues, queue_size))
    other = vm.maps.total - MAPS_PER_STACK * vm.maps.stacks if vm.maps else OTHER_MAPS
    return Headroom(model, vm.maps, other, limit, vm.stack_bytes)


def fitting_queues(vm: VmFacts, limit: int, queue_size: int | None = None) -> int:
    """How many queues each disk may have so that the worst case does not warn; 0 where not
    even one may."""
    least, most = 0, 1024  # VIRTIO_QUEUE_MAX, include/hw/virtio/virtio.h
    while least < most:
        middle = (least + most + 1) // 2
        if headroom(vm, limit, middle, queue_size).tight:
            most = middle - 1
        else:
            least = middle
    return least

"""The model of QEMU's coroutine pool, against the pool's own rules carried out step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples.facts import QEMU_7, QEMU_10, vm, with_reading
from vmtune.model.host.facts import MemoryMaps, Reading
from vmtune.model.host.pools import (
    MAPS_PER_STACK,
    OTHER_COROUTINES,
    OTHER_MAPS,
    Design,
    Disk,
    Geometry,
    Level,
    fitting_queues,
    geometry_of,
    headroom,
    pool_model,
)
from vmtune.model.versions import Version

DEFAULT_LIMIT = 65530


class Pool:
    """QEMU's pool in small: who makes a stack, and who keeps it."""

    def __init__(self, threads: int) -> None:
        self.made = 0
        self.own = [0] * threads

    def begin(self, thread: int) -> None:
        raise NotImplementedError

    def end(self, thread: int) -> None:
        raise NotImplementedError


class PerThread(Pool):
    """As of 7.2: what is released is shared, and a thread takes all of it at once."""

    def __init__(self, geometry: Geometry) -> None:
        super().__init__(geometry.threads)
        self.most = 64 + geometry.demand
        self.shared = 0

    def begin(self, thread: int) -> None:
        if not self.own[thread] and self.shared > 64:
            self.own[thread], self.shared = self.shared, 0
        if self.own[thread]:
            self.own[thread] -= 1
        else:
            self.made += 1

    def end(self, thread: int) -> None:
        if self.shared < 2 * self.most:
            self.shared += 1
        elif self.own[thread] < self.most:
            self.own[thread] += 1
        else:
            self.made -= 1

    @property
    def pooled(self) -> int:
        return self.shared + sum(self.own)


class Batches(Pool):
    """As of 9.0: each thread has up to two batches, the rest is shared."""

    def __init__(self, geometry: Geometry) -> None:
        super().__init__(geometry.threads)
        self.most = 128 + geometry.demand
        self.local: list[list[int]] = [[] for _ in self.own]
        self.shared: list[int] = []

    def begin(self, thread: int) -> None:
        local = self.local[thread]
        if not local and self.shared:
            local.append(self.shared.pop())
        if not local:
            self.made += 1
            return
        local[-1] -= 1
        if not local[-1]:
            local.pop()

    def end(self, thread: int) -> None:
        local = self.local[thread]
        if not local or local[-1] >= 128:
            if len(local) == 2:
                full = local.pop()
                if sum(self.shared) < self.most:
                    self.shared.append(full)
                else:
                    self.made -= full
            local.append(0)
        local[-1] += 1

    @property
    def pooled(self) -> int:
        return sum(self.shared) + sum(map(sum, self.local))


@dataclass(frozen=True)
class Burst:
    """So many requests begin on one thread and end on another."""

    begins_on: int
    ends_on: int
    requests: int


bursts = st.lists(
    st.builds(Burst, st.integers(0, 3), st.integers(0, 3), st.integers(1, 700)), max_size=25
)
geometries = st.builds(
    Geometry,
    qemu=st.just(QEMU_10),
    disks=st.lists(st.builds(Disk, st.integers(1, 4), st.sampled_from([2, 64, 256]))
                   , max_size=2).map(tuple),
    iothreads=st.integers(0, 3),
)  # fmt: skip


@pytest.mark.parametrize(("version", "make"), [(QEMU_7, PerThread), (QEMU_10, Batches)])
@given(geometry=geometries, work=bursts)
def test_no_load_makes_more_stacks_than_the_model_says(
    version: Version,
    make: Callable[[Geometry], PerThread | Batches],
    geometry: Geometry,
    work: list[Burst],
) -> None:
    geometry = replace(geometry, qemu=version)
    pool = make(geometry)
    peak = max((burst.requests for burst in work), default=0)
    model = pool_model(geometry, peak)
    for burst in work:
        for _ in range(burst.requests):
            pool.begin(burst.begins_on % geometry.threads)
        assert pool.made <= model.most - OTHER_COROUTINES
        for _ in range(burst.requests):
            pool.end(burst.ends_on % geometry.threads)
        assert pool.made == pool.pooled <= model.max_pooled


@pytest.mark.parametrize(
    ("version", "design", "soft"),
    [
        (Version(2, 11), Design.PER_THREAD, 64 + 20480),
        (Version(7, 2, 22), Design.PER_THREAD, 64 + 20480),
        (Version(8, 2, 9), Design.PER_THREAD, 64 + 20480),
        (Version(9), Design.BATCHES, 128 + 20480),
        (Version(10, 0, 2), Design.BATCHES, 128 + 20480),
    ],
)
def test_the_limit_of_each_release(version: Version, design: Design, soft: int) -> None:
    ten = Geometry(version, disks=(Disk(16, 256),) * 10)
    model = pool_model(ten)
    assert (model.design, model.soft_limit) == (design, soft)


def test_the_geometry_is_read_from_the_vm() -> None:
    facts = with_reading(with_reading(vm(), "virtio_blk_queues", 4), "virtio_blk_queue_size", 128)
    facts = with_reading(facts, "iothread_thread_pool_max", 5)
    geometry = geometry_of(facts)
    assert geometry.disks == (Disk(4, 128), Disk(4, 128))
    assert (geometry.threads, geometry.workers) == (3, 64 + 2 * 5)
    assert geometry_of(facts, queues=2, queue_size=64).disks == (Disk(2, 64),) * 2


def test_what_cannot_be_read_is_what_qemu_would_choose() -> None:
    facts = vm(readings={}, vcpus=3)
    geometry = geometry_of(facts)
    assert geometry.disks == (Disk(3, 256), Disk(3, 256))
    assert geometry.workers == 3 * 64
    nothing = replace(facts, readings={"main_loop_thread_pool_max": Reading(None)})
    assert geometry_of(nothing).workers == 3 * 64


def test_maps_of_pooled_stacks_are_not_counted_twice() -> None:
    cold, warm = (vm(maps=MemoryMaps(*n)) for n in ((311, 0), (311 + 2 * 412, 412)))
    assert headroom(cold, DEFAULT_LIMIT).max_maps == headroom(warm, DEFAULT_LIMIT).max_maps
    assert headroom(vm(), DEFAULT_LIMIT).other_maps == OTHER_MAPS


@pytest.mark.parametrize(
    ("maps", "limit", "level"),
    [
        (None, None, Level.UNKNOWN),
        (MemoryMaps(311, 0), DEFAULT_LIMIT, Level.FINE),
        (MemoryMaps(58978, 0), DEFAULT_LIMIT, Level.BLOCKER),
        (MemoryMaps(58977, 29000), DEFAULT_LIMIT, Level.FINE),
        (MemoryMaps(311, 0), 3000, Level.WARNING),
    ],
)
def test_levels(maps: MemoryMaps | None, limit: int | None, level: Level) -> None:
    assert headroom(vm(maps=maps), limit).level is level


def test_what_is_left() -> None:
    found = headroom(vm(maps=MemoryMaps(400, 10)), 10000)
    assert found.left == 10000 - found.max_maps
    assert found.left_now == 9600
    assert headroom(vm(), 10000).left_now is None
    assert headroom(vm(), None).left is None


disks = st.integers(1, 40).map(lambda n: tuple(f"virtio-disk{i}" for i in range(n)))


@given(names=disks, queues=st.integers(1, 64), old=st.booleans())
def test_the_remedies_are_enough(names: tuple[str, ...], queues: int, old: bool) -> None:
    facts = vm(QEMU_7 if old else QEMU_10, virtio_disks=names)
    tight = headroom(facts, DEFAULT_LIMIT, queues)
    assert not headroom(facts, tight.needed_limit, queues).tight
    fits = fitting_queues(facts, DEFAULT_LIMIT)
    assert not fits or not headroom(facts, DEFAULT_LIMIT, fits).tight
    assert fits == 1024 or headroom(facts, DEFAULT_LIMIT, fits + 1).tight
    assert tight.tight == (queues > fits)


def test_each_stack_takes_two_maps() -> None:
    one, more = (pool_model(Geometry(QEMU_10), n) for n in (100, 101))
    assert more.max_maps() - one.max_maps() == MAPS_PER_STACK == 2


def test_with_safestack_each_coroutine_has_two_stacks() -> None:
    one, two = (
        headroom(vm(maps=MemoryMaps(400, 10, stacks), stack_bytes=8192), 65530) for stacks in (1, 2)
    )
    assert two.max_maps - one.max_maps == MAPS_PER_STACK * one.model.most
    assert one.max_stack_bytes == one.model.most * 8192
    assert two.max_stack_bytes == 2 * one.model.most * 8192
    assert headroom(vm(maps=MemoryMaps(400, 0)), 65530).max_stack_bytes is None

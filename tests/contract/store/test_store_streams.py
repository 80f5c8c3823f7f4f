"""Samples and events, and many threads at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from tests.support.examples.samples import make_samples
from vmtune.errors import NotFound, OperationInProgress, StaleRevision
from vmtune.model.host.inventory import EventTopic
from vmtune.storage import Store
from vmtune.storage.series.chunks import SAMPLES

CHUNK = SAMPLES.size
VM = UUID("00000000-0000-4000-8000-00000000000a")


@pytest.fixture
def migration(store: Store) -> UUID:
    return store.migrations.begin(vm=VM, vm_name="guest", source="a", destination="b").id


def test_samples_come_back_however_they_were_added(store: Store, migration: UUID) -> None:
    taken = make_samples(CHUNK * 2 + 50)
    store.migrations.add_samples(migration, taken[:1])
    store.migrations.add_samples(migration, [])
    store.migrations.add_samples(migration, taken[1 : CHUNK - 1])
    for sample in taken[CHUNK - 1 : CHUNK + 2]:
        store.migrations.add_samples(migration, [sample])
    store.migrations.add_samples(migration, taken[CHUNK + 2 :])
    assert store.migrations.samples(migration) == tuple(taken)
    assert store.migrations.sample_count(migration) == len(taken)


def test_samples_of_one_migration_are_not_anothers(store: Store, migration: UUID) -> None:
    other = store.migrations.begin(vm=uuid4(), vm_name="o", source="a", destination="b").id
    taken = make_samples(3)
    store.migrations.add_samples(migration, taken)
    store.migrations.add_samples(other, taken[:1])
    assert store.migrations.samples(other) == tuple(taken[:1])
    assert store.migrations.sample_count(other) == 1
    assert store.migrations.sample_count(migration) == 3


def test_samples_are_paged_by_time(store: Store, migration: UUID) -> None:
    taken = make_samples(CHUNK + 20)
    store.migrations.add_samples(migration, taken)
    seen: list[int] = []
    after = -1
    while page := store.migrations.samples(migration, after, limit=CHUNK // 3):
        seen += [sample.at_ms for sample in page]
        after = page[-1].at_ms
    assert seen == [sample.at_ms for sample in taken]


def test_a_page_does_not_part_samples_of_one_millisecond(store: Store, migration: UUID) -> None:
    taken = [
        replace(sample, at_ms=at) for sample, at in zip(make_samples(4), (1, 2, 2, 3), strict=True)
    ]
    store.migrations.add_samples(migration, taken)
    assert store.migrations.samples(migration, limit=2) == tuple(taken[:3])
    assert store.migrations.samples(migration, after_ms=2, limit=2) == (taken[3],)


def test_nor_does_it_where_they_are_in_two_chunks(store: Store, migration: UUID) -> None:
    together = range(CHUNK - 2, CHUNK + 2)
    taken = [
        replace(sample, at_ms=together.start if place in together else place)
        for place, sample in enumerate(make_samples(CHUNK + 20))
    ]
    store.migrations.add_samples(migration, taken)
    for limit in (CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 2):
        assert store.migrations.samples(migration, limit=limit) == tuple(taken[: CHUNK + 2])


def test_a_migration_comes_with_its_samples(store: Store, migration: UUID) -> None:
    taken = make_samples(3)
    store.migrations.add_samples(migration, taken)
    found = store.migrations.with_samples(migration, taken[0].at_ms, 1)
    assert (found.of, found.taken) == (store.migrations.get(migration), (taken[1],))
    again = store.migrations.with_samples(migration, taken[0].at_ms, 1, found.version)
    assert (again.of, again.version, again.taken) == (found.of, found.version, None)
    store.migrations.add_samples(migration, [replace(taken[0], at_ms=taken[-1].at_ms)])
    later = store.migrations.with_samples(migration, taken[0].at_ms, 2, found.version)
    assert later.version != found.version
    assert later.taken is not None
    with pytest.raises(NotFound):
        store.migrations.with_samples(uuid4())


def test_a_clock_that_was_set_back_does_not_mix_the_order(store: Store, migration: UUID) -> None:
    taken = make_samples(4)
    late = [replace(taken[0], at_ms=1000), replace(taken[1], at_ms=400)]
    store.migrations.add_samples(migration, late)
    store.migrations.add_samples(migration, [replace(taken[2], at_ms=500)])
    store.migrations.add_samples(migration, [replace(taken[3], at_ms=1001)])
    found = store.migrations.samples(migration)
    assert [sample.at_ms for sample in found] == [1000, 1000, 1000, 1001]
    assert [sample.iteration for sample in found] == [sample.iteration for sample in taken]


def test_events_are_told_in_order_and_filtered(store: Store) -> None:
    assert store.events.newest_id() == 0
    one = store.events.append(EventTopic.HOST, "a", {"added": True, "n": 1})
    two = store.events.append(EventTopic.MIGRATION, "m", {"state": "active", "deep": {"x": [1]}})
    three = store.events.append(EventTopic.MIGRATION, "n", {})
    assert store.events.since(0) == (one, two, three)
    assert store.events.since(one.id) == (two, three)
    assert store.events.since(0, limit=1) == (one,)
    assert store.events.since(0, topics=[EventTopic.HOST]) == (one,)
    assert store.events.since(0, topics=[]) == ()
    assert store.events.since(0, subject="m") == (two,)
    assert store.events.newest_id() == three.id
    assert store.events.since(three.id) == ()


def test_pruning_keeps_the_newest_and_their_numbers(store: Store) -> None:
    made = [store.events.append(EventTopic.VM, str(n), {}) for n in range(5)]
    assert store.events.prune(keep=9) == 0
    assert store.events.prune(keep=2) == 3
    assert store.events.since(0) == tuple(made[3:])
    assert store.events.prune(keep=1) == 1
    assert store.events.append(EventTopic.VM, "x", {}).id > made[-1].id


def test_of_many_threads_one_gets_the_vm(store: Store) -> None:
    threads = 12
    barrier = threading.Barrier(threads)

    def begin(number: int) -> bool:
        barrier.wait()
        try:
            if number % 2:
                store.migrations.begin(vm=VM, vm_name="guest", source="a", destination="b")
            else:
                store.applications.begin(VM, "a", "p", 1, {}, False, [])
        except OperationInProgress:
            return False
        return True

    with ThreadPoolExecutor(threads) as pool:
        assert sum(pool.map(begin, range(threads))) == 1


def test_two_stores_write_at_once_and_lose_nothing(url: str) -> None:
    """Two services on one database, each with several threads: each change is made once."""
    changes = 10
    with Store.open(url, wait_s=30) as first, Store.open(url, wait_s=30) as second:
        first.profiles.create("p", "", {"n": 0})

        def change(store: Store) -> None:
            for _ in range(changes):
                while True:
                    seen = store.profiles.get("p").current
                    wanted = {"n": int(seen.values["n"]) + 1}
                    try:
                        store.profiles.revise("p", wanted, expected=seen.number)
                    except StaleRevision:
                        continue
                    store.events.append(EventTopic.PROFILE, "p", wanted)
                    break

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(change, [first, second] * 3))
        current = first.profiles.get("p").current
        assert (current.values, current.number) == ({"n": 6 * changes}, 6 * changes + 1)
        assert len(first.events.since(0, limit=1000)) == 6 * changes


def test_who_follows_events_misses_none(url: str) -> None:
    """Numbers become visible in their order: none appears behind one that was seen."""
    writers, each = 6, 15
    with Store.open(url, wait_s=30) as one, Store.open(url, wait_s=30) as two:
        done = threading.Event()
        seen: list[int] = []

        def follow() -> None:
            last = 0
            while True:
                ended = done.is_set()
                for event in two.events.since(last):
                    seen.append(event.id)
                    last = event.id
                if ended:
                    return

        def write(number: int) -> None:
            store = (one, two)[number % 2]
            for _ in range(each):
                store.events.append(EventTopic.VM, str(number), {})

        with ThreadPoolExecutor(writers + 1) as pool:
            follower = pool.submit(follow)
            list(pool.map(write, range(writers)))
            done.set()
            follower.result()
        assert len(seen) == len(set(seen)) == writers * each

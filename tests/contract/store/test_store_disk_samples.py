"""Samples of copied disks: kept in order, read in pages, dropped with the migration's others."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from vmtune.errors import NotFound
from vmtune.model.migration.copy_progress import DiskSample
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import MigrationFields, MigrationState
from vmtune.storage import Store


def begin(store: Store) -> UUID:
    return store.migrations.begin(
        vm=uuid4(), vm_name="guest", source="a", destination="b", state=MigrationState.STARTING
    ).id


def at(at_ms: int, *targets: str) -> list[DiskSample]:
    return [DiskSample(at_ms, target, at_ms * 2, 1 << 40, 5, 7) for target in targets]


def test_they_come_back_in_order_and_those_of_one_moment_together(store: Store) -> None:
    id = begin(store)
    for second in range(300):
        store.migrations.add_disk_samples(id, at(second * 1000, "vda", "vdb"))
    found = store.migrations.disk_samples(id)
    assert found == tuple(s for second in range(300) for s in at(second * 1000, "vda", "vdb"))
    first = store.migrations.disk_samples(id, limit=3)
    assert first == found[:4]
    assert store.migrations.disk_samples(id, after_ms=first[-1].at_ms) == found[4:]
    with pytest.raises(NotFound):
        store.migrations.disk_samples(uuid4())


def test_they_are_dropped_with_the_migrations_samples(store: Store) -> None:
    id = begin(store)
    store.migrations.add_disk_samples(id, at(1000, "vda"))
    ended = MigrationFields(state=MigrationState.FAILED)
    record = store.migrations.update(id, **ended)
    assert record.ended_at is not None
    (number,) = store.retention.to_drop(record.ended_at + timedelta(seconds=1), 10)
    store.retention.drop(number)
    assert store.migrations.disk_samples(id) == ()


def test_how_far_copies_are_is_noted_and_nothing_else_changes(store: Store) -> None:
    id = begin(store)
    before = store.migrations.get(id)
    disks = (CopiedDisk("vda", "/x", copied_bytes=5), CopiedDisk("vdb", "/y"))
    store.migrations.note_disks(id, disks)
    assert store.migrations.get(id) == replace(before, disks=disks)
    with pytest.raises(NotFound):
        store.migrations.note_disks(uuid4(), disks)

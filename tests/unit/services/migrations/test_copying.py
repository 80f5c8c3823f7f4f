"""The progress that is told while disks are copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest

from tests.support.examples.samples import make_samples
from vmtune.engine.controllers import Controllers
from vmtune.errors import SetupError
from vmtune.model.migration.copy_progress import CopyProgress, DiskSample
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import QemuStatus, Sample, Snapshot
from vmtune.services.migrations.records import DurableNotes, MigrationRecords

COMING = CopiedDisk("vda", "/x", total_bytes=60, copied_bytes=30, bytes_per_s=10, left_ms=3000)
READY = CopiedDisk("vda", "/x", total_bytes=60, copied_bytes=60, ready_ms=9)


class Bus:
    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def progress(self, topic: object, subject: object, data: dict[str, Any]) -> None:
        self.told.append(data)


async def test_the_disks_are_told_alone_until_all_have_caught_up() -> None:
    bus = Bus()
    notes = DurableNotes(cast(MigrationRecords, SimpleNamespace(bus=bus)), uuid4())
    await notes.copying(CopyProgress((COMING,), 7), 40)
    (told,) = bus.told
    assert (told["phase"], told["share"], told["disks_left_ms"]) == ("disks", 0.3, 3000)
    (disk,) = told["disks"]
    assert (disk["target"], disk["bytes_per_s"], disk["ready"]) == ("vda", 10, False)
    await notes.copying(CopyProgress((READY,), 8), 40)
    assert len(bus.told) == 1  # the memory's samples tell of them from now on
    assert notes.share == 0.3


async def test_samples_of_disks_are_stored_a_few_at_a_time_and_at_the_end() -> None:
    stored: list[DiskSample] = []
    away = True

    def add(id: object, taken: Sequence[DiskSample]) -> None:
        if away:
            raise SetupError("the database is away")
        stored.extend(taken)

    store = SimpleNamespace(migrations=SimpleNamespace(add_disk_samples=add))
    records = SimpleNamespace(bus=Bus(), store=store)
    notes = DurableNotes(cast(MigrationRecords, records), uuid4())
    for second in range(5):
        await notes.copying(CopyProgress((COMING,), second), 40)
    assert stored == []
    away = False
    for second in range(5, 12):
        await notes.copying(CopyProgress((COMING,), second), 40)
    assert [sample.at_ms for sample in stored] == list(range(10))  # those of before, too
    await notes.store_samples(None)
    assert [sample.at_ms for sample in stored] == list(range(12))
    assert stored[0] == DiskSample(0, "vda", 30, 60, 10, 0)


@pytest.mark.parametrize("with_sample", [True, False])
async def test_samples_are_stored_when_post_copy_is_paused(with_sample: bool) -> None:
    """Through libvirt no sample of the pause comes."""
    stored: list[Sample] = []
    store = SimpleNamespace(
        migrations=SimpleNamespace(add_samples=lambda _, taken: stored.extend(taken))
    )
    records = SimpleNamespace(bus=SimpleNamespace(is_heard=False), store=store)
    notes = DurableNotes(cast(MigrationRecords, records), uuid4())
    none = cast(Controllers, SimpleNamespace(report=None))
    sent = make_samples(3)
    for sample in sent:
        await notes.sampled(Snapshot(QemuStatus.POSTCOPY_ACTIVE, sample), none, None)
    assert stored == []
    last = replace(sent[-1], at_ms=9000, status=QemuStatus.POSTCOPY_PAUSED)
    seen = last if with_sample else None
    await notes.sampled(Snapshot(QemuStatus.POSTCOPY_PAUSED, seen), none, None)
    assert stored == [*sent, last] if with_sample else stored == sent

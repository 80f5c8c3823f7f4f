"""The progress that is told while disks are copied."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

from vmtune.model.migration.copy_progress import CopyProgress
from vmtune.model.migration.disks import CopiedDisk
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

"""What is restored of a source: without libvirt, and next to it, which cannot restore all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.engine.undo import Undo
from vmtune.errors import CommandRefused
from vmtune.hypervisor.protocol import VM_BUSY, Driver
from vmtune.model.host.facts import Connection, Reading
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.built_in import BUILT_IN

BEFORE = {"cpu_throttle_initial_percent": 20, "max_bandwidth_bytes_per_s": 1 << 27}
BOUND = {"max_cpu_throttle_percent": 99}


class Source:
    """A QEMU of libvirt's, as the migration has left it."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = dict.fromkeys({**BEFORE, **BOUND}, 1)

    async def host_facts(self) -> Any:
        return SimpleNamespace(connection=Connection.LIBVIRT, libvirt=None)

    async def read(self, vm: UUID, tunables: Collection[str]) -> dict[str, Reading]:
        return {name: Reading(self.values[name]) for name in tunables}

    async def write(self, vm: UUID, changes: Sequence[Change]) -> None:
        self.values |= {change.tunable: change.value for change in changes}


@pytest.mark.parametrize("bounded", [True, False])
async def test_the_first_throttle_is_restored_where_steering_has_bounded_it(bounded: bool) -> None:
    source = Source()
    values = {**BEFORE, **(BOUND if bounded else {})}
    record = make_migration(journal=tuple(Change(*each) for each in values.items()))
    undo = Undo(record, cast(Driver, source), None, BUILT_IN)
    assert await undo.journal() == ()
    assert source.values["max_bandwidth_bytes_per_s"] == 1, "libvirt restores it"
    assert source.values["cpu_throttle_initial_percent"] == (20 if bounded else 1)


class Direct(Source):
    """A QEMU without libvirt that refuses some values, or at first everything."""

    def __init__(self, refused: Collection[str] = (), busy: int = 0) -> None:
        super().__init__()
        self._refused = refused
        self._busy = busy

    async def host_facts(self) -> Any:
        return SimpleNamespace(connection=Connection.QMP, libvirt=None)

    async def write(self, vm: UUID, changes: Sequence[Change]) -> None:
        self._busy -= 1
        if self._busy >= 0:
            raise CommandRefused("another operation has it", code=VM_BUSY)
        for change in changes:
            if change.tunable in self._refused:
                raise CommandRefused("not today")
            self.values[change.tunable] = change.value


JOURNAL = tuple(Change(*each) for each in BEFORE.items())


@pytest.mark.parametrize("refused", BEFORE)
async def test_a_value_that_is_refused_keeps_no_other_from_being_restored(refused: str) -> None:
    source = Direct({refused})
    undo = Undo(make_migration(journal=JOURNAL), cast(Driver, source), None, BUILT_IN)
    (told,) = await undo.journal()
    assert (told.field, told.code) == (f"values.{refused}", "not_put_back")
    assert told.message.endswith(": not today")
    assert {name for name in BEFORE if source.values[name] == BEFORE[name]} == set(BEFORE) - {
        refused
    }


async def test_a_source_that_is_busy_for_a_moment_is_restored() -> None:
    source = Direct(busy=2)
    undo = Undo(make_migration(journal=JOURNAL), cast(Driver, source), None, BUILT_IN)
    assert await undo.journal() == ()
    assert {name: source.values[name] for name in BEFORE} == BEFORE

"""What is restored beside libvirt, which cannot restore all of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.engine.finalize import _restore_journal
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Connection, Reading
from vmtune.model.plan.changes import Change

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
    assert await _restore_journal(record, cast(Driver, source)) == ()
    assert source.values["max_bandwidth_bytes_per_s"] == 1, "libvirt restores it"
    assert source.values["cpu_throttle_initial_percent"] == (20 if bounded else 1)

"""What is put back of a throttle that steering has bounded, however the migration ends."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from tests.contract.driver.moving import start
from tests.support.drivers.benches import Bench
from tests.support.examples.migrations import make_migration
from vmtune.engine.end_state import Evidence
from vmtune.engine.finalize import finalize
from vmtune.errors import CommandRefused
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Connection
from vmtune.model.migration.record import MigrationState
from vmtune.model.plan.changes import Change, in_order, undo
from vmtune.model.plan.outcome import Outcome
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Value

STARTED: dict[str, Value] = {"auto_converge": True, "cpu_throttle_initial_percent": 1}
BOUNDED = [
    Change("cpu_throttle_initial_percent", 1),
    Change("cpu_throttle_increment_percent", 1),
    Change("max_cpu_throttle_percent", 1),
]


class Both:
    """The bench's hosts."""

    def __init__(self, bench: Bench, connection: Connection) -> None:
        self._bench, self._connection = bench, connection

    async def connection(self) -> Connection:
        return self._connection

    async def source(self) -> Driver:
        return self._bench.source

    async def destination(self) -> Driver:
        return self._bench.destination


async def _nothing(vm: UUID, driver: Driver) -> Sequence[Outcome]:
    return ()


@pytest.mark.parametrize("ends", [MigrationState.COMPLETED, MigrationState.CANCELLED])
async def test_what_bounded_the_throttle_does_not_keep_the_rest(
    bench: Bench, ends: MigrationState
) -> None:
    """QEMU refuses its first throttle of before, and all that is set with it, next to a bound that
    is lower."""
    connection = (await bench.source.host_facts()).connection
    completes = ends is MigrationState.COMPLETED
    if completes and connection is Connection.LIBVIRT:
        pytest.skip("libvirt ends the QEMU that the guest has left")
    before = (await bench.source.vm_facts(bench.vm)).readings
    handle = await start(bench, STARTED)
    await bench.source.write(bench.vm, in_order(BOUNDED, before))
    with pytest.raises(CommandRefused, match="max_cpu_throttle"):
        await bench.source.write(bench.vm, [Change("cpu_throttle_initial_percent", 20)])
    if completes:
        await bench.source.write(bench.vm, [Change("max_bandwidth_bytes_per_s", 0)])
        await handle.wait()
    else:
        await bench.source.abort_migration(bench.vm)
        with pytest.raises(CommandRefused):
            await handle.wait()
    record = make_migration(vm=bench.vm, wanted=STARTED, journal=tuple(undo(BOUNDED, before)))
    evidence = Evidence(handle=handle)
    fields = await finalize(record, Both(bench, connection), evidence, BUILT_IN, _nothing)
    assert (fields["state"], fields["problems"]) == (ends, ())
    names = {*STARTED, *(change.tunable for change in BOUNDED)}
    now = await bench.source.read(bench.vm, names)
    assert now == {name: before[name] for name in names}

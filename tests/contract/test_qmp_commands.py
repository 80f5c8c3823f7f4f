"""The list of commands that leave vmtune, held against what a real run sends."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.drivers.bench_qmp import kinds
from tests.support.drivers.benches import Bench
from tests.support.qemus import qemu
from vmtune.errors import CommandRefused
from vmtune.hypervisor.protocol import MigrateOrder
from vmtune.hypervisor.qemu import allowlist as qmp_allowed
from vmtune.hypervisor.qmp import monitor as qmp_monitor
from vmtune.model.host.facts import VmState
from vmtune.model.migration.record import QemuStatus
from vmtune.model.plan.changes import Change, in_order
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.packs.pack import read_toml
from vmtune.model.tunables.tunable import Kind, Route

SENT_ONLY_BY_BENCHMARKS = set(qmp_allowed.FOR_BENCHMARKS)
"""tests/contract/test_bench_direct.py and its like send them."""
SENT_WITH_DISKS = {"migrate-continue"}
"""tests/e2e/disks/test_copied_disks_direct.py sends it."""
BUILD = qemu.builds()[0]
SENT_TO_OTHERS = {"query-accelerators"} if BUILD.release < (11,) else {"query-kvm"}


async def a_run(bench: Bench) -> None:
    """Everything that vmtune does to a QEMU, once."""
    source = bench.source
    await source.host_facts()
    await source.list_vms()
    facts = await source.vm_facts(bench.vm)
    changes = [
        Change(row.name, not reading.value)
        for row in BUILT_IN.values()
        if row.route in (Route.MONITOR, Route.LIVE) and row.kind is Kind.BOOLEAN
        for reading in [facts.readings[row.name]]
        if reading.value is not None and row.name != "dirty_limit"
    ]
    changes += [Change("iothread_thread_pool_max", 8), Change("main_loop_thread_pool_max", 8)]
    await source.write(bench.vm, in_order(changes, facts.readings))
    with pytest.raises(CommandRefused):  # it has no ring
        await source.measure_dirty_rates(bench.vm, 50)
    await source.dirty_rates(bench.vm)
    await source.lift_dirty_limit(bench.vm)
    await source.virtio_queues(bench.vm)
    await source.sample_dirtied(bench.vm, 60, 512)
    await bench.open_destination()
    order = {**bench.slow, "postcopy": True, "max_postcopy_bandwidth_bytes_per_s": 4096}
    handle = await source.start_migration(MigrateOrder(bench.vm, order, {}), bench.destination)
    while (await source.migration(bench.vm)).status is QemuStatus.SETUP:
        pass
    await source.pause(bench.vm)
    await source.resume(bench.vm)
    await source.start_postcopy(bench.vm)
    while await bench.destination.vm_state(bench.vm) is not VmState.RUNNING:
        pass
    while (await source.migration(bench.vm)).status is QemuStatus.POSTCOPY_DEVICE:
        pass  # QEMU 10.2 and later, until the destination confirms that it runs
    await source.recover_postcopy(bench.vm, bench.destination, "127.0.0.1", gives_up=True)
    fast = ("max_bandwidth_bytes_per_s", "max_postcopy_bandwidth_bytes_per_s")
    await source.write(bench.vm, [Change(name, 0) for name in fast])
    await handle.wait()
    await bench.destination.completed(bench.vm)


PACK = """
format = 1
name = "probed"
title = "What no QEMU has, but is asked for"
[[tunable]]
name = "of_an_object"
title = "x"
why = "x."
type = "boolean"
[tunable.qom]
types = ["x-none"]
property = "none"
[[tunable]]
name = "of_a_command"
title = "x"
why = "x."
type = "boolean"
read_only = true
[tunable.command]
read = {execute = "x-query-none"}
"""


async def aborted(bench: Bench) -> None:
    """What only an abort sends."""
    await bench.open_destination()
    slow = MigrateOrder(bench.vm, bench.slow, {})
    handle = await bench.source.start_migration(slow, bench.destination)
    while (await bench.source.migration(bench.vm)).status is QemuStatus.SETUP:
        pass
    await bench.source.abort_migration(bench.vm)
    with pytest.raises(CommandRefused):
        await handle.wait()
    await bench.source.reset_after_migration(bench.vm)


@pytest.mark.skipif(bool(BUILD.why_not), reason=BUILD.why_not or "runs")
async def test_the_list_is_what_a_run_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: set[str] = set()

    refused: list[str] = []
    tunables = BUILT_IN.with_packs(read_toml(PACK, "pack").tunables)

    def noted(command: str, arguments: Mapping[str, Any] | None, more: Collection[str]) -> None:
        try:
            qmp_allowed.check(command, arguments, more)
        except CommandRefused as refusal:
            refused.append(refusal.message)
            raise
        sent.add(command)

    monkeypatch.setattr(qmp_monitor, "check", noted)
    for number, run in enumerate((a_run, aborted)):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with kinds()[0].open(folder) as bench:
            bench.source.tunables = bench.destination.tunables = tunables
            await run(bench)
    assert refused == []  # some who ask take a refusal for an answer
    elsewhere = SENT_ONLY_BY_BENCHMARKS | SENT_TO_OTHERS | SENT_WITH_DISKS
    assert sent == set(qmp_allowed.ALLOWED) - elsewhere

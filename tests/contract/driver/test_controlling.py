"""What is done to a VM while it migrates, and measured on it."""

from __future__ import annotations

import pytest

from tests.contract.driver.moving import NOBODY, settled, start, until_at_rest
from tests.support.drivers.bench_fake import FakeBench
from tests.support.drivers.benches import Bench
from vmtune.errors import CommandRefused, NotFound, TooLate
from vmtune.model.host.facts import VmState
from vmtune.model.migration.record import QemuStatus
from vmtune.model.plan.changes import Change
from vmtune.model.versions import Version


class TestControlling:
    """What is done to a VM while it migrates."""

    async def test_a_paused_guest_arrives_and_goes_on(self, bench: Bench) -> None:
        handle = await start(bench)
        for _ in range(2):  # harmless when repeated
            await bench.source.pause(bench.vm)
            assert await bench.source.vm_state(bench.vm) is VmState.PAUSED
        await bench.source.write(bench.vm, [Change("max_bandwidth_bytes_per_s", 0)])
        await handle.wait()
        await until_at_rest(bench.destination, bench.vm)
        by_itself = bench.source.uri.startswith("qemu")
        state = await bench.destination.vm_state(bench.vm)
        assert state is (VmState.RUNNING if by_itself else VmState.PAUSED)
        for _ in range(2):
            await bench.destination.resume(bench.vm)
            assert await bench.destination.vm_state(bench.vm) is VmState.RUNNING

    async def test_a_paused_guest_stays_and_goes_on(self, bench: Bench) -> None:
        handle = await start(bench)
        await bench.source.pause(bench.vm)
        await bench.source.abort_migration(bench.vm)
        with pytest.raises(CommandRefused):
            await handle.wait()
        await bench.source.reset_after_migration(bench.vm)
        by_itself = bench.source.uri.startswith("qemu")
        state = await bench.source.vm_state(bench.vm)
        assert state is (VmState.RUNNING if by_itself else VmState.PAUSED)
        await bench.source.resume(bench.vm)
        assert await bench.source.vm_state(bench.vm) is VmState.RUNNING

    async def test_switching_to_postcopy(self, bench: Bench) -> None:
        handle = await start(bench, {"postcopy": True})
        await bench.source.start_postcopy(bench.vm)
        await bench.source.write(bench.vm, [Change("max_bandwidth_bytes_per_s", 0)])
        await handle.wait()
        await settled(bench)

    async def test_postcopy_that_was_not_asked_for_is_refused(self, bench: Bench) -> None:
        with pytest.raises(TooLate):
            await bench.source.start_postcopy(bench.vm)
        handle = await start(bench)
        with pytest.raises(CommandRefused, match=r"(?i)post-?copy"):
            await bench.source.start_postcopy(bench.vm)
        assert (await bench.source.migration(bench.vm)).status is QemuStatus.ACTIVE
        await bench.source.abort_migration(bench.vm)
        with pytest.raises(CommandRefused):
            await handle.wait()

    async def test_without_a_ring_nothing_is_measured(self, bench: Bench) -> None:
        with pytest.raises(CommandRefused, match=r"not enabled|unexpected") as refused:
            await bench.source.measure_dirty_rates(bench.vm, 50)
        assert refused.value.problems[0].code == "command_refused"
        if bench.qemu >= Version(8, 2):
            assert not (await bench.source.dirty_rates(bench.vm)).measured

    async def test_what_the_guest_changes_is_sampled(self, bench: Bench) -> None:
        """An idle guest: nothing, or next to it. Before 8.2 QEMU measures whole seconds."""
        over_ms = 60 if bench.qemu >= Version(8, 2) else 1000
        seen = await bench.source.sample_dirtied(bench.vm, over_ms, 512)
        assert over_ms <= seen.after_ms < 30_000
        assert 0 <= seen.dirty_bytes < 64 << 20
        if bench.qemu < Version(8, 2):
            with pytest.raises(CommandRefused) as refused:
                await bench.source.sample_dirtied(bench.vm, 60, 512)
            assert refused.value.problems[0].code == "whole_seconds"

    async def test_what_its_memory_holds(self, bench: Bench) -> None:
        memory = (await bench.source.vm_facts(bench.vm)).memory_bytes
        seen = await bench.source.sample_pages(bench.vm, memory)
        assert (seen is None) == isinstance(bench, FakeBench)  # the others are run by root
        if seen is not None:
            assert 0 < seen.contents.pages <= 1024
            assert 0 <= seen.contents.zero_share <= 1
            assert 0 < seen.contents.packed_share <= 1
            again = await bench.source.sample_pages(bench.vm, memory, seen)
            assert again is not None
            assert again.contents.pages == seen.contents.pages

    async def test_what_of_it_is_in_memory(self, bench: Bench) -> None:
        seen = await bench.source.resident_bytes(bench.vm)
        assert seen is None or 1 << 20 < seen < 1 << 32

    async def test_an_unknown_vm_is_not_found(self, bench: Bench) -> None:
        source = bench.source
        calls = (source.vm_state, source.pause, source.resume, source.start_postcopy)
        for call in (*calls, source.dirty_rates, source.resident_bytes):
            with pytest.raises(NotFound, match=str(NOBODY)):
                await call(NOBODY)

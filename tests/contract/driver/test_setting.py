"""What a driver sets, and puts back."""

from __future__ import annotations

import pytest

from tests.contract.driver.moving import NOBODY
from tests.support.drivers.benches import Bench
from vmtune.errors import CommandRefused, NotFound
from vmtune.model.host.facts import Reading, VmFacts
from vmtune.model.plan.changes import Change, in_order, undo
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Kind, Route, Tunable, Value

SETTABLE = [t for t in BUILT_IN.values() if t.route in (Route.MONITOR, Route.LIVE)]


def another_value(tunable: Tunable, now: Value | None) -> Value:
    """A value that is not set now."""
    if tunable.kind is Kind.BOOLEAN:
        return not now
    if tunable.kind is Kind.CHOICE:
        return next(c for c in tunable.choices if c != now)
    assert isinstance(now, int)
    return now * 2 if tunable.power_of_two else now - 1 if now == tunable.maximum else now + 1


def offered(tunable: Tunable, facts: VmFacts) -> bool:
    return facts.readings[tunable.name].value is not None


def ring_only(tunable: Tunable) -> bool:
    """Takes a dirty ring, which only KVM has: QEMU refuses it on these guests."""
    return tunable.name == "dirty_limit"


class TestSetting:
    async def test_every_setting_sticks(self, bench: Bench) -> None:
        facts = await bench.source.vm_facts(bench.vm)
        wanted = {
            t.name: another_value(t, facts.readings[t.name].value)
            for t in SETTABLE
            if offered(t, facts) and not ring_only(t)
        }
        changes = [Change(name, value) for name, value in wanted.items()]
        await bench.source.write(bench.vm, in_order(changes, facts.readings))
        readings = await bench.source.read(bench.vm, list(wanted))
        assert {name: readings[name].value for name in wanted} == wanted

    async def test_undoing_restores_everything(self, bench: Bench) -> None:
        before = (await bench.source.vm_facts(bench.vm)).readings
        changes = [
            Change("announce_rounds", 9),
            Change("iothread_thread_pool_max", 8),
            Change("main_loop_thread_pool_max", 8),
        ]
        await bench.source.write(bench.vm, in_order(changes, before))
        now = (await bench.source.vm_facts(bench.vm)).readings
        assert now != before
        await bench.source.write(bench.vm, in_order(undo(changes, before), now))
        assert (await bench.source.vm_facts(bench.vm)).readings == before

    async def test_a_main_loop_object_is_made_where_there_is_none(self, bench: Bench) -> None:
        before = await bench.source.vm_facts(bench.vm)
        wanted = {"main_loop_thread_pool_max": 9, "main_loop_aio_max_batch": 5}
        await bench.source.write(bench.vm, [Change(n, v) for n, v in wanted.items()])
        readings = await bench.source.read(bench.vm, list(wanted))
        assert {name: readings[name].value for name in wanted} == wanted
        assert (await bench.source.vm_facts(bench.vm)).main_loop
        back = undo([Change(n, v) for n, v in wanted.items()], before.readings)
        await bench.source.write(bench.vm, back)
        now = await bench.source.read(bench.vm, list(wanted))
        assert now == {name: before.readings[name] for name in wanted}

    async def test_polling_and_batches_of_iothreads(self, bench: Bench) -> None:
        wanted = {
            "iothread_poll_max_ns": 70_000,
            "iothread_poll_grow": 3,
            "iothread_poll_shrink": 4,
            "iothread_aio_max_batch": 6,
        }
        before = (await bench.source.vm_facts(bench.vm)).readings
        if BUILT_IN["iothread_poll_weight"].in_release(bench.qemu):
            wanted["iothread_poll_weight"] = 5
        changes = [Change(name, value) for name, value in wanted.items()]
        await bench.source.write(bench.vm, in_order(changes, before))
        readings = await bench.source.read(bench.vm, list(wanted))
        for name, value in wanted.items():
            assert readings[name].parts == {"iothread1": value, "iothread2": value}

    async def test_a_refused_pool_limit_of_the_main_loop_does_not_stay(self, bench: Bench) -> None:
        await bench.source.write(bench.vm, [Change("main_loop_thread_pool_min", 8)])
        with pytest.raises(CommandRefused) as refused:
            await bench.source.write(bench.vm, [Change("main_loop_thread_pool_max", 4)])
        assert refused.value.problems[0].field == "values.main_loop_thread_pool_max"
        name = "main_loop_thread_pool_max"
        assert (await bench.source.read(bench.vm, [name]))[name].value == 64

    async def test_one_part_can_be_set_alone(self, bench: Bench) -> None:
        change = Change("iothread_thread_pool_max", 7, "iothread2")
        await bench.source.write(bench.vm, [change])
        reading = (await bench.source.read(bench.vm, [change.tunable]))[change.tunable]
        assert reading == Reading(
            None, {"iothread1": 64, "iothread2": 7}, why_unknown="its parts differ"
        )

    async def test_both_pool_limits_move_above_and_below_the_present_ones(
        self, bench: Bench
    ) -> None:
        names = ("iothread_thread_pool_min", "iothread_thread_pool_max")
        for low, high in ((70, 80), (2, 4), (64, 64)):
            readings = await bench.source.read(bench.vm, names)
            changes = [Change(names[0], low), Change(names[1], high)]
            await bench.source.write(bench.vm, in_order(changes, readings))
            now = await bench.source.read(bench.vm, names)
            assert [now[name].value for name in names] == [low, high]

    async def test_what_was_set_is_read_back_in_one_go(self, bench: Bench) -> None:
        changes = [
            Change("multifd", True),
            Change("downtime_limit_ms", 444),
            Change("iothread_thread_pool_max", 7, "iothread2"),
        ]
        names = [change.tunable for change in changes]
        for pool in (7, 9):
            changes[-1] = Change("iothread_thread_pool_max", pool, "iothread2")
            read = await bench.source.write_and_read(bench.vm, changes, names)
            assert (read["multifd"].value, read["downtime_limit_ms"].value) == (True, 444)
            assert read["iothread_thread_pool_max"].parts == {"iothread1": 64, "iothread2": pool}

    async def test_a_refused_command_changes_nothing(self, bench: Bench) -> None:
        before = await bench.source.vm_facts(bench.vm)
        good = Change("downtime_limit_ms", 444)
        with pytest.raises(CommandRefused) as refused:
            await bench.source.write(bench.vm, [good, Change("multifd_channels", 0)])
        assert refused.value.problems[0].field == "values.multifd_channels"
        assert (await bench.source.vm_facts(bench.vm)).readings == before.readings

    async def test_a_setting_that_qemu_does_not_have_is_refused_by_name(self, bench: Bench) -> None:
        new, old = "vcpu_dirty_limit_mib_per_s", "compress_threads"
        missing = old if BUILT_IN[new].in_release(bench.qemu) else new
        with pytest.raises(CommandRefused) as refused:
            await bench.source.write(bench.vm, [Change(missing, 5)])
        assert refused.value.problems[0].field == f"values.{missing}"

    async def test_a_refused_pool_limit_does_not_stay(self, bench: Bench) -> None:
        await bench.source.write(bench.vm, [Change("iothread_thread_pool_min", 8)])
        with pytest.raises(CommandRefused) as refused:
            await bench.source.write(bench.vm, [Change("iothread_thread_pool_max", 4)])
        assert refused.value.problems[0].field == "values.iothread_thread_pool_max"
        reading = (await bench.source.read(bench.vm, ["iothread_thread_pool_max"]))[
            "iothread_thread_pool_max"
        ]
        assert reading.parts == {"iothread1": 64, "iothread2": 64}

    async def test_an_unknown_vm_cannot_be_set(self, bench: Bench) -> None:
        with pytest.raises(NotFound, match=str(NOBODY)):
            await bench.source.write(NOBODY, [Change("downtime_limit_ms", 444)])

    async def test_nothing_to_set_is_no_error(self, bench: Bench) -> None:
        await bench.source.write(bench.vm, [])
        await bench.source.write_boot(bench.vm, [])

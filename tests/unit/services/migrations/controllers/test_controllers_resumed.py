"""The reaper and the steps of migrations that another service takes over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World, assemble
from tests.unit.services.migrations.controlled import (
    REAPED,
    begin,
    finish,
    step,
    until_done,
)
from vmtune.engine.steps.convergence import remembered
from vmtune.model.migration.controller_record import ReaperEnd, StepEffect, StepRecord
from vmtune.model.migration.record import MigrationState, Sample
from vmtune.model.plan.outcome import Status
from vmtune.testing.fake.qemu import Fault, FaultKind


class TestAnotherService:
    """A service dies: the store stays, and everything in memory goes."""

    @asynccontextmanager
    async def reborn(self, it: World) -> AsyncIterator[World]:
        await it.jobs.stop()
        engine = it.jobs
        engine._started = False
        engine._runner = type(engine._runner)()
        made = assemble(it.store, it.drivers, lambda host: it.drivers[host.name], engine)
        await made.jobs.start()
        try:
            yield made
        finally:
            await made.jobs.stop()

    async def test_the_reaper_goes_on(self, it: World) -> None:
        await it.profile(**REAPED)
        record = await begin(it)
        await it.until(lambda: bool(it.store.migrations.rounds(record.id)))
        before = it.store.migrations.rounds(record.id)
        async with self.reborn(it) as next_one:
            count = it.source.ring.measurements
            await next_one.until(lambda: it.source.ring.measurements >= count + 3)
            done = await finish(next_one, record)
        assert done.state is MigrationState.COMPLETED
        assert done.reaper is not None
        assert (done.reaper.end, done.reaper.interruptions) == (ReaperEnd.MIGRATION_ENDED, 1)
        rounds = it.store.migrations.rounds(record.id)
        assert rounds[: len(before)] == before
        assert len(rounds) > len(before)
        assert [r.at_ms for r in rounds] == sorted(r.at_ms for r in rounds)
        assert {o.status for o in done.outcomes} == {Status.UNKNOWN}
        assert "could not go on for a while" in done.outcomes[0].reason

    async def test_the_reaper_is_known_to_have_run_from_the_start(self, it: World) -> None:
        """It dies before the first second is over."""
        await it.profile(**REAPED)
        it.source.faults.append(Fault(FaultKind.HANG, "migrate"))
        record = await it.migrations.start(VM, "b", "p")
        await it.until(lambda: not it.source.faults)
        stored = it.store.migrations.get(record.id).reaper
        assert stored is not None
        assert stored.end is ReaperEnd.RUNNING
        assert len(it.store.migrations.rounds(record.id)) == stored.rounds_before >= 1

    async def test_a_reaper_that_nobody_takes_up_was_interrupted(self, it: World) -> None:
        await it.profile(**REAPED)
        record = await begin(it)
        await it.until(lambda: bool(it.store.migrations.rounds(record.id)))
        await it.jobs.stop()
        it.source.parameters["max-bandwidth"] = 0
        while it.source.outgoing.status.running:
            it.source.step()
        async with self.reborn(it) as next_one:
            done = await next_one.ended(record)
        assert done.state is MigrationState.COMPLETED
        assert done.reaper is not None
        assert done.reaper.end is ReaperEnd.INTERRUPTED
        assert "vmtune ended before" in done.outcomes[0].reason

    async def test_steps_that_were_done_are_not_done_again(self, it: World) -> None:
        steps = [
            step(set={"downtime_limit_ms": 900}),
            {"when": {"after_s": 1}, "then": {"set": {"downtime_limit_ms": 950}}},
        ]
        await it.profiles.create("p", {}, steps=steps)
        record = await begin(it)
        await until_done(it, record)
        async with self.reborn(it) as next_one:
            await until_done(next_one, record, 2)
            done = await finish(next_one, record)
        assert [(r.number, r.effect) for r in done.step_records] == [
            (0, StepEffect.DONE),
            (1, StepEffect.DONE),
        ]
        sets = [a for c, a in it.source.commands if c == "migrate-set-parameters"]
        limits = [a["downtime-limit"] for a in sets if "downtime-limit" in a]
        assert limits == [900, 950, 300], "and what was set before, once it has ended"

    async def test_what_steps_count_goes_on_from_the_stored_samples(
        self, it: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given: list[tuple[int, ...]] = []

        def noted(steps: Any, fired: Any, samples: Sequence[Sample]) -> Any:
            given.append(tuple(one.at_ms for one in samples))
            return remembered(steps, fired, samples)

        monkeypatch.setattr("vmtune.engine.steps.executor.remembered", noted)
        last = {"when": {"after_s": 3600}, "then": {"set": {"downtime_limit_ms": 950}}}
        await it.profiles.create("p", {}, steps=[last])
        record = await begin(it)
        await it.until(lambda: it.store.migrations.sample_count(record.id) > 0)
        before = it.store.migrations.sample_count(record.id)
        async with self.reborn(it) as next_one:
            await next_one.until(lambda: len(given) > 1)
            await finish(next_one, record)
        stored = tuple(one.at_ms for one in it.store.migrations.samples(record.id))
        assert given[0] == ()
        assert len(given[1]) >= before
        assert given[1] == stored[: len(given[1])]

    async def test_a_step_that_was_under_way_is_looked_up(self, it: World) -> None:
        await it.profiles.create("p", {"postcopy": True}, steps=[step(do="postcopy")])
        it.source.faults.append(Fault(FaultKind.HANG, "migrate-start-postcopy"))
        record = await begin(it)

        await it.until(lambda: not it.source.faults)
        (pending,) = it.store.migrations.get(record.id).step_records
        assert pending.effect is StepEffect.PENDING
        async with self.reborn(it) as next_one:
            done = await next_one.ended(record)
        (taken,) = done.step_records
        assert (taken.effect, taken.at_ms) == (StepEffect.DONE, pending.at_ms)
        assert done.state is MigrationState.COMPLETED

    async def test_a_step_that_nobody_looked_up_stays_unknown(self, it: World) -> None:
        record = it.store.migrations.begin(
            vm=VM, vm_name="vm", source="a", destination="b", state=MigrationState.ACTIVE
        )
        pending = StepRecord(None, 5, 1, "set x to y", "asked for", StepEffect.PENDING)
        it.store.migrations.note_step(record.id, pending)
        await it.job.finalize(str(record.id))
        (taken,) = it.store.migrations.get(record.id).step_records
        assert taken.effect is StepEffect.UNKNOWN
        assert "vmtune ended before" in taken.detail

    async def test_a_guest_that_was_paused_goes_on_when_the_next_service_finds_it(
        self, it: World
    ) -> None:
        it.source.iterations_when_paused = 10_000
        await it.profiles.create("p", {}, steps=[step(do="pause")])
        record = await begin(it)
        await until_done(it, record)
        await it.jobs.stop()
        it.source.outgoing.iterations = 1
        while it.source.outgoing.status.running:
            it.source.step()
        assert it.waiting.status == "paused"
        async with self.reborn(it) as next_one:
            done = await next_one.ended(record)
        assert (done.state, it.waiting.status) == (MigrationState.COMPLETED, "running")

"""The reaper and the steps of real migrations of fake QEMUs, stored, judged and put back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.simulated.fakes import OLDEST, VM
from tests.support.simulated.world import World, world
from tests.unit.services.migrations.controlled import (
    REAPED,
    begin,
    finish,
    step,
    until_done,
)
from vmtune.errors import (
    Blocked,
    CommandRefused,
    Conflict,
    InvalidInput,
    NotFound,
    SetupError,
    TooLate,
)
from vmtune.model.migration.controller_record import ReaperEnd, StepEffect
from vmtune.model.migration.record import MigrationState
from vmtune.model.plan.outcome import Status
from vmtune.testing.fake.qemu import Fault, FaultKind


class TestReaper:
    async def test_it_runs_from_before_the_migration_to_its_end(self, it: World) -> None:
        await it.profile(**REAPED)
        record = await begin(it)
        await it.until(lambda: it.source.ring.measurements >= 4)
        done = await finish(it, record)
        report = done.reaper
        assert report is not None
        assert (report.end, report.reason) == (ReaperEnd.MIGRATION_ENDED, "")
        assert report.rounds_before >= 1
        rounds = it.store.migrations.rounds(record.id)
        assert len(rounds) == report.round_count == it.source.ring.measurements
        assert rounds[report.rounds_before - 1].at_ms <= 0 < rounds[-1].at_ms
        assert rounds[-1].fills[0] > 0
        assert {o.tunable: (o.status, o.seen) for o in done.outcomes} == {
            "reaper_policy": (Status.EFFECTIVE, "predict"),
            "reaper_max_interval_ms": (Status.EFFECTIVE, 60),
        }
        sent = [name for name, _ in it.source.commands]
        assert sent.index("calc-dirty-rate") < sent.index("migrate")

    async def test_it_is_stored_while_it_runs_and_shown(self, it: World) -> None:
        shown: list[dict[str, Any]] = []

        async def listen() -> None:
            async for message in it.bus.subscribe():
                if "share" in message.data:
                    shown.append(dict(message.data))

        listener = asyncio.create_task(listen())
        await it.profile(**REAPED)
        record = await begin(it)
        await it.until(lambda: it.store.migrations.get(record.id).reaper is not None)
        now = it.store.migrations.get(record.id)
        assert now.reaper is not None
        assert now.reaper.end is ReaperEnd.RUNNING
        assert it.store.migrations.rounds(record.id)
        await it.until(lambda: bool(shown))
        listener.cancel()
        assert shown[-1]["reaper"].keys() == {"interval_ms", "fullest"}
        await finish(it, record)

    async def test_an_override_leaves_it_out(self, tmp_path: Path) -> None:
        async with world(tmp_path) as it:
            await it.profile(**REAPED)
            with pytest.raises(Blocked, match="dirty ring"):
                await it.migrations.start(VM, "b", "p")
            done = await it.migrate("p", overrides=("reaper_needs_ring",))
            assert (done.state, done.reaper) == (MigrationState.COMPLETED, None)
            assert [o.status for o in done.outcomes] == [Status.REJECTED] * 2
            assert done.outcomes[1].reason == "no reaper ran"
            assert it.source.ring.measurements == 0

    async def test_an_old_qemu_is_told_beforehand(self, tmp_path: Path) -> None:
        async with world(tmp_path, OLDEST, ring_entries=65536) as it:
            await it.profile(reaper_policy="predict")
            plan = (await it.plans.plan(VM, "p", destination="b")).plan
            assert [f.code for f in plan.blockers()] == ["not_offered_by_qemu"]
            assert "8.2" in plan.blockers()[0].message

    async def test_somebody_who_measures_is_told_beforehand(self, it: World) -> None:
        await it.profile(**REAPED)
        await it.drivers["a"].measure_dirty_rates(VM, 1000)
        it.source.ring.measuring = 5  # it takes a while
        await it.drivers["a"].dirty_rates(VM)
        plan = (await it.plans.plan(VM, "p", destination="b")).plan
        assert [f.code for f in plan.findings] == ["dirty_rate_being_measured"]

    @pytest.mark.parametrize("at", [1, 3])
    async def test_a_refusal_ends_it_and_not_the_migration(self, it: World, at: int) -> None:
        await it.profile(**REAPED)
        fault = Fault(FaultKind.REFUSE, "calc-dirty-rate", at, "change dirtyrate state failed.")
        it.source.faults.append(fault)
        record = await begin(it)

        def ended() -> bool:
            report = it.store.migrations.get(record.id).reaper
            return report is not None and report.end is not ReaperEnd.RUNNING

        await it.until(ended)
        done = await finish(it, record)
        assert done.state is MigrationState.COMPLETED
        assert done.reaper is not None
        assert done.reaper.end is (ReaperEnd.NOT_STARTED if at == 1 else ReaperEnd.FAILED)
        assert all(o.status is Status.REJECTED for o in done.outcomes)
        assert all("change dirtyrate state failed." in o.reason for o in done.outcomes)

    async def test_where_a_full_ring_can_end_the_guest_it_makes_no_pause(self, it: World) -> None:
        it.drivers["a"].empties_rings_in_part()
        await it.profile(**REAPED)
        plan = (await it.plans.plan(VM, "p", destination="b")).plan
        assert [f.code for f in plan.findings] == ["ring_must_not_fill"]
        record = await begin(it)
        await it.until(lambda: it.source.ring.measurements >= 4)
        done = await finish(it, record)
        assert done.reaper is not None
        assert (done.reaper.longest_interval_ms, done.reaper.throughout) == (50, True)

    async def test_there_nothing_migrates_without_it(self, it: World) -> None:
        it.drivers["a"].empties_rings_in_part()
        await it.profile(downtime_limit_ms=400)
        with pytest.raises(Blocked, match="can die in the first second"):
            await it.migrations.start(VM, "b", "p")
        done = await it.migrate("p", overrides=("ring_without_reaper",))
        assert done.state is MigrationState.COMPLETED

    async def test_there_nothing_migrates_where_it_could_not_begin(self, it: World) -> None:
        it.drivers["a"].empties_rings_in_part()
        await it.profile("r", **REAPED)
        for overrides in ((), ("ring_without_reaper",)):
            fault = Fault(FaultKind.REFUSE, "calc-dirty-rate", 1, "change dirtyrate state failed.")
            it.source.faults.append(fault)
            done = await it.ended(await it.migrations.start(VM, "b", "r", overrides=overrides))
            if overrides:
                assert done.state is MigrationState.COMPLETED
            else:
                assert done.state is MigrationState.FAILED
                assert "change dirtyrate state failed." in done.failure
                assert "migrate" not in [name for name, _ in it.source.commands]

    async def test_an_application_leaves_it_to_the_next_migration(self, it: World) -> None:
        await it.profile(**REAPED, downtime_limit_ms=700)
        applied = await it.applications.apply(VM, "p")
        assert {o.tunable: o.status for o in applied.outcomes} == {
            "downtime_limit_ms": Status.EFFECTIVE,
            **dict.fromkeys(REAPED, Status.PENDING_MIGRATION),
        }
        assert (await it.applications.verify(VM)).clean
        assert it.source.ring.measurements == 0

    async def test_settings_that_are_accepted_no_more_fail_no_migration(self, it: World) -> None:
        stored = {"reaper_policy": "clairvoyant", "reaper_min_interval_ms": 1}
        it.store.profiles.create("p", "", stored)
        done = await it.migrate("p")
        assert (done.state, done.reaper) == (MigrationState.COMPLETED, None)
        assert {o.reason for o in done.outcomes} == {"no reaper ran"}

    async def test_a_migration_that_cannot_be_begun_ends_it_too(self, it: World) -> None:
        await it.profile(**REAPED)
        it.waiting.faults.append(Fault(FaultKind.REFUSE, "migrate-incoming", text="no port left"))
        done = await it.ended(await it.migrations.start(VM, "b", "p"))
        assert (done.state, "no port left" in done.failure) == (MigrationState.FAILED, True)
        assert done.reaper is not None
        assert done.reaper.end is ReaperEnd.MIGRATION_ENDED
        count = it.source.ring.measurements
        await asyncio.sleep(0.2)
        assert it.source.ring.measurements == count


class TestSteps:
    async def profile(self, it: World, *steps: dict[str, object], **values: object) -> None:
        await it.profiles.create("p", values, steps=steps)

    async def test_a_step_is_carried_out_recorded_and_told(self, it: World) -> None:
        await self.profile(it, step(set={"downtime_limit_ms": "1s"}), downtime_limit_ms=700)
        record = await begin(it)
        await until_done(it, record)
        assert it.source.parameters["downtime-limit"] == 1000
        done = await finish(it, record)
        (taken,) = done.step_records
        assert (taken.number, taken.effect) == (0, StepEffect.DONE)
        assert taken.action == "set downtime_limit_ms to 1,000 ms"
        assert (taken.values, taken.of_copies) == ({"downtime_limit_ms": 1000}, False)
        # What the profile asked for was proven before the step changed it.
        assert [o.status for o in done.outcomes] == [Status.EFFECTIVE]
        told = [e.data["step"] for e in it.store.events.since(0) if "step" in e.data]
        assert [(s["effect"], s["action"]) for s in told] == [("done", taken.action)]
        assert [(s["values"], s["of_copies"]) for s in told] == [
            ({"downtime_limit_ms": 1000}, False)
        ]

    async def test_what_it_set_is_put_back_where_the_migration_ends_badly(self, it: World) -> None:
        await self.profile(
            it,
            step(set={"downtime_limit_ms": 1500, "max_cpu_throttle_percent": 60}),
            auto_converge=True,
        )
        it.source.parameters["downtime-limit"] = 444
        record = await begin(it)
        await until_done(it, record)
        assert it.source.parameters["max-cpu-throttle"] == 60
        await it.migrations.abort(record.id)
        done = await it.ended(record)
        assert (done.state, done.problems) == (MigrationState.CANCELLED, ())
        assert it.source.parameters["downtime-limit"] == 444
        assert it.source.parameters["max-cpu-throttle"] == 99

    async def test_a_paused_guest_runs_where_it_arrives(self, it: World) -> None:
        await self.profile(it, step(do="pause"))
        done = await it.ended(await begin(it))
        assert (done.state, done.problems) == (MigrationState.COMPLETED, ())
        assert it.waiting.status == "running"
        assert ("cont", {}) in it.waiting.commands

    async def test_a_paused_guest_runs_where_it_stays(self, it: World) -> None:
        it.source.iterations_when_paused = 10_000
        await self.profile(it, step(do="pause"))
        record = await begin(it)
        await until_done(it, record)
        it.source.fail("Unable to write to socket: Broken pipe")
        done = await it.ended(record)
        assert done.state is MigrationState.FAILED
        assert it.source.status == "running"

    async def test_a_guest_that_its_owner_paused_stays_so(self, it: World) -> None:
        it.source.answer("stop", {})
        done = await it.ended(await it.migrations.start(VM, "b"))
        assert (done.state, it.waiting.status) == (MigrationState.COMPLETED, "paused")

    async def test_a_guest_that_cannot_be_resumed_is_told(
        self, it: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("vmtune.engine.finalize.ANSWERS_WITHIN_S", 0.1)
        await self.profile(it, step(do="pause"))
        it.waiting.faults += [
            Fault(FaultKind.REFUSE, "cont", at, "Resetting") for at in range(1, 9)
        ]
        done = await it.ended(await begin(it))
        assert done.state is MigrationState.COMPLETED
        (problem,) = done.problems
        assert (problem.code, problem.field) == ("still_paused", "vm")
        assert "Resetting" in problem.message

    async def test_a_guest_that_stops_again_is_told_of(
        self, it: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By an I/O error, as often as it is resumed."""
        monkeypatch.setattr("vmtune.engine.finalize.ANSWERS_WITHIN_S", 0.1)
        await self.profile(it, step(do="pause"))
        it.waiting.stops_again = True
        async with asyncio.timeout(20):
            done = await it.ended(await begin(it))
        assert [problem.code for problem in done.problems] == ["still_paused"]
        assert it.waiting.commands.count(("cont", {})) < 20

    async def test_aborting(self, it: World) -> None:
        await self.profile(it, step(do="abort"))
        done = await it.ended(await begin(it))
        assert done.state is MigrationState.CANCELLED
        assert done.failure.startswith("aborted by a convergence step: ")
        assert "iterations completed" in done.failure
        assert it.source.status == "running"

    async def test_switching_to_postcopy(self, it: World) -> None:
        await self.profile(it, step(do="postcopy"), postcopy=True)
        done = await it.ended(await begin(it))
        assert done.state is MigrationState.COMPLETED
        assert [r.effect for r in done.step_records] == [StepEffect.DONE]
        assert ("migrate-start-postcopy", {}) in it.source.commands

    async def test_a_refused_step_is_no_failed_migration(self, it: World) -> None:
        await self.profile(it, step(set={"downtime_limit_ms": 900}))
        await it.plans.plan(VM, "p", destination="b")  # which asks QEMU by the same command
        it.source.faults.append(Fault(FaultKind.REFUSE, "migrate-set-parameters", text="not now"))
        record = await begin(it)
        await until_done(it, record)
        done = await finish(it, record)
        assert done.state is MigrationState.COMPLETED
        assert [(r.effect, r.detail) for r in done.step_records] == [
            (StepEffect.REFUSED, "not now")
        ]

    async def test_a_step_that_cannot_be_stored_is_not_done(
        self, it: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise SetupError("the database is full")

        await self.profile(it, step(set={"downtime_limit_ms": 900}))
        monkeypatch.setattr(it.store.migrations, "note_step", full)
        record = await begin(it)
        await it.until(lambda: it.store.migrations.sample_count(record.id) > 0)
        monkeypatch.undo()
        assert it.source.parameters["downtime-limit"] == 300
        assert (await finish(it, record)).state is MigrationState.COMPLETED

    async def test_steps_that_do_not_fit_are_refused_with_the_values(self, it: World) -> None:
        with pytest.raises(InvalidInput) as refused:
            await self.profile(it, step(do="postcopy"), downtime_limit_ms=700)
        assert refused.value.problems[0].field == "steps.0.then.do"
        with pytest.raises(InvalidInput) as refused:
            await self.profile(it, step(do="jump"), multifd_channels=0)
        fields = {problem.field for problem in refused.value.problems}
        assert fields == {"steps.0.then.do", "values.multifd_channels"}

    async def test_changing_a_value_keeps_the_steps(self, it: World) -> None:
        steps = [step(set={"downtime_limit_ms": 900})]
        await self.profile(it, *steps)
        changed = await it.profiles.amend("p", {"downtime_limit_ms": 500}, 1)
        assert (changed.current.number, len(changed.current.steps)) == (2, 1)
        without = await it.profiles.amend("p", {}, 2, steps=[])
        assert (without.current.number, without.current.steps) == (3, ())
        back = await it.profiles.restore("p", 1, 3)
        assert (back.current.values, len(back.current.steps)) == ({}, 1)
        with pytest.raises(InvalidInput, match="no change is given"):
            await it.profiles.amend("p", {}, 4)


class TestUsers:
    async def test_a_user_sets_what_qemu_heeds(self, it: World) -> None:
        record = await begin(it, None)
        changed = await it.migrations.change(record.id, {"downtime_limit_ms": "2s"})
        (taken,) = changed.step_records
        assert (taken.number, taken.reason) == (None, "requested by a user")
        assert taken.effect is StepEffect.DONE
        assert taken.at_ms > 0
        assert it.source.parameters["downtime-limit"] == 2000
        await it.migrations.abort(record.id)
        await it.ended(record)
        assert it.source.parameters["downtime-limit"] == 300

    async def test_a_users_change_is_no_step_of_the_profile(self, it: World) -> None:
        steps = [{"when": {"after_iterations": 30}, "then": {"set": {"downtime_limit_ms": 900}}}]
        await it.profiles.create("p", {}, steps=steps)
        record = await begin(it)
        await it.migrations.change(record.id, {"downtime_limit_ms": 500})
        await until_done(it, record, 2)
        done = await finish(it, record)
        numbers = [record.number for record in done.step_records]
        assert len(numbers) == 2 and set(numbers) == {None, 0}  # whichever came first

    @pytest.mark.parametrize(
        ("values", "field", "code"),
        [
            ({}, "values", "invalid_input"),
            ({"multifd_channels": 4}, "values.multifd_channels", "not_settable"),
            ({"multifd": True}, "values.multifd", "not_settable"),
            ({"downtime_limit_ms": None}, "values.downtime_limit_ms", "not_settable"),
            ({"downtime_limit_ms": "soon"}, "values.downtime_limit_ms", "invalid_value"),
            ({"downtime": 5}, "values.downtime", "unknown_tunable"),
            (
                {"max_cpu_throttle_percent": 9},
                "values.max_cpu_throttle_percent",
                "needs_auto_converge",
            ),
        ],
    )
    async def test_anything_else_is_refused_by_name(
        self, it: World, values: dict[str, object], field: str, code: str
    ) -> None:
        record = await begin(it, None)
        with pytest.raises(InvalidInput) as refused:
            await it.migrations.change(record.id, values)
        (problem,) = refused.value.problems
        assert (problem.field, problem.code) == (field, code)
        assert problem.remedy
        assert it.store.migrations.get(record.id).step_records == ()
        await it.migrations.abort(record.id)
        await it.ended(record)

    async def test_what_qemu_refuses_is_told_and_recorded(self, it: World) -> None:
        record = await begin(it, None)
        it.source.faults.append(Fault(FaultKind.REFUSE, "migrate-set-parameters", text="not now"))
        with pytest.raises(CommandRefused, match="not now"):
            await it.migrations.change(record.id, {"downtime_limit_ms": 500})
        await finish(it, record)
        (taken,) = it.store.migrations.get(record.id).step_records
        assert (taken.effect, taken.detail) == (StepEffect.REFUSED, "not now")

    async def test_only_while_it_is_active(self, it: World) -> None:
        waiting = it.store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
        with pytest.raises(Conflict) as early:
            await it.migrations.change(waiting.id, {"downtime_limit_ms": 500})
        assert early.value.problems[0].code == "migration_not_active"
        it.store.migrations.update(waiting.id, state=MigrationState.CANCELLED)
        with pytest.raises(TooLate, match="cancelled"):
            await it.migrations.change(waiting.id, {"downtime_limit_ms": 500})
        with pytest.raises(NotFound):
            await it.migrations.change(VM, {"downtime_limit_ms": 500})

    async def test_not_when_qemu_has_ended_it_meanwhile(self, it: World) -> None:
        record = await begin(it, None)
        await it.jobs.stop()
        it.source.outgoing.end(it.source.outgoing.status.FAILED, "x")
        with pytest.raises(TooLate, match="failed"):
            await it.migrations.change(record.id, {"downtime_limit_ms": 500})
        assert it.store.migrations.get(record.id).step_records == ()

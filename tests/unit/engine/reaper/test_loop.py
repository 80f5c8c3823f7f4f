"""The reaper's loop: when it reaps, what it tells, and that nothing can make it disturb anyone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.simulated.control import BUSY, VM, MadeQemu, MadeTime, sample
from vmtune.engine.controllers import Controllers, Past
from vmtune.engine.reaper.loop import FIRST_ROUND_WITHIN_S
from vmtune.engine.reaper.settings import ReaperSettings
from vmtune.errors import (
    CommandRefused,
    HostUnreachable,
    MonitorBusy,
    NotFound,
    OutcomeUnknown,
    VmtuneError,
)
from vmtune.model.host.dirty_rates import usable_entries
from vmtune.model.migration.controller_record import ReaperEnd, ReaperReport, StepEffect
from vmtune.model.migration.record import QemuStatus
from vmtune.model.tunables.rows.reaper import ReaperPolicy

REFUSED = CommandRefused("mode dirty-ring is not enabled, use other method instead.")
GONE = NotFound("no such VM")
LOST = OutcomeUnknown("the connection was lost")


class Trial:
    """A migration of a made QEMU with a reaper beside it."""

    def __init__(self, qemu: MadeQemu, controllers: Controllers) -> None:
        self.qemu = qemu
        self.time = qemu.time
        self.controllers = controllers

    async def start(self) -> None:
        """The migration, which is active at once."""
        self.controllers.migration_starts()
        self.qemu.migrating = True
        await self.controllers.on_sample(sample())

    async def leave(self) -> ReaperReport:
        """End it all."""
        leaving = asyncio.ensure_future(self.controllers.__aexit__(None, None, None))
        await self.time.until(leaving)
        await leaving
        report = self.controllers.report
        assert report is not None
        return report


@asynccontextmanager
async def trial(
    settings: ReaperSettings | None = None,
    past: Past | None = None,
    unpaused: bool = False,
    **qemu: object,
) -> AsyncIterator[Trial]:
    """A trial whose controllers were entered."""
    time = MadeTime()
    made = MadeQemu(time, **qemu)  # type: ignore[arg-type] # as the dataclass has them
    controllers = Controllers(
        made, VM, reaper=settings or ReaperSettings(), past=past, time=time, unpaused=unpaused
    )
    entering = asyncio.ensure_future(controllers.__aenter__())
    await time.until(entering)  # type: ignore[arg-type] # what it returns does not matter
    try:
        yield Trial(made, controllers)
    finally:
        left = [task for task in asyncio.all_tasks() if task.get_name().startswith("reaper")]
        for task in left:
            task.cancel()


async def test_the_rings_are_emptied_before_the_migration_starts() -> None:
    async with trial() as t:
        assert t.qemu.measurements == 1
        assert t.controllers.take_rounds() == []  # there is no timeline yet
        await t.start()
        await t.time.pass_(5)
        report = await t.leave()
        first, *rest = report.rounds
        assert first.at_ms <= 0 < rest[-1].at_ms
        assert (report.end, report.reason) == (ReaperEnd.MIGRATION_ENDED, "")
        assert report.rounds_before == 1
        assert report.throughout
        assert report.round_count == len(report.rounds) > 5


async def test_a_busy_ring_is_emptied_near_its_target_and_never_fills() -> None:
    async with trial(ReaperSettings(target_fill_percent=60), pages_per_s=(130_000.0, 9000.0)) as t:
        await t.start()
        await t.time.pass_(20)
        report = await t.leave()
        late = [each for each in report.rounds if each.at_ms > 3000]
        usable = usable_entries(65536) / 65536
        assert all(0.5 < each.fullest / usable < 0.7 for each in late)
        assert (report.filled_rounds, report.fullest > 0.5) == (0, True)
        assert report.mean_interval_ms > 200
        assert late[0].fills[1] < late[0].fills[0] / 5


async def test_each_round_lasts_as_long_as_was_asked_and_what_it_cost() -> None:
    async with trial(slow_ms=7) as t:
        await t.start()
        await t.time.pass_(10)
        report = await t.leave()
        ends = [each.at_ms for each in report.rounds]
        for before, after, each in zip(ends, ends[1:], report.rounds[1:], strict=False):
            assert after - before == pytest.approx(each.elapsed_ms, abs=2)
            assert each.elapsed_ms == pytest.approx(each.interval_ms + each.cost_ms, abs=0.1)
            assert each.cost_ms == pytest.approx(7, abs=6)
        assert report.costs_ms == pytest.approx(sum(each.cost_ms for each in report.rounds), abs=1)
        assert report.waits_ms == sum(each.interval_ms for each in report.rounds)


async def test_it_backs_off_where_rounds_take_long() -> None:
    async with trial(pages_per_s=(400_000.0,), slow_ms=100) as t:
        await t.start()
        await t.time.pass_(10)
        report = await t.leave()
        assert min(each.interval_ms for each in report.rounds[4:]) >= 400
        assert report.costs_ms <= 0.25 * 10_000


@pytest.mark.parametrize("policy", ReaperPolicy)
async def test_every_policy_learns_of_a_busy_guest_before_the_migration(
    policy: ReaperPolicy,
) -> None:
    """Only what a round measured was tracked then: it stands for the whole time."""
    async with trial(ReaperSettings(policy), pages_per_s=(150_000.0,)) as t:
        await t.time.pass_(8)
        before = t.qemu.measurements
        await t.time.pass_(2)
        assert t.qemu.measurements - before >= 4
        await t.start()
        await t.time.pass_(0.4)
        assert (await t.leave()).fullest < 1


async def test_an_idle_guest_is_left_alone() -> None:
    async with trial(ReaperSettings(), pages_per_s=(0.0,)) as t:
        await t.start()
        await t.time.pass_(60)
        report = await t.leave()
        assert report.longest_interval_ms == 1000
        assert report.round_count < 90


async def test_where_a_full_ring_can_end_the_guest_round_follows_round() -> None:
    """However idle the guest is and long a round takes: it may write fast in the next moment."""
    async with trial(pages_per_s=(0.0,), slow_ms=30, unpaused=True) as t:
        await t.start()
        await t.time.pass_(10)
        report = await t.leave()
        assert (report.shortest_interval_ms, report.longest_interval_ms) == (50, 50)
        assert report.round_count > 10_000 / 90


@pytest.mark.parametrize("error", [BUSY, LOST])
async def test_there_the_migration_waits_for_the_first_round(error: VmtuneError) -> None:
    async with trial(unpaused=True, errors={"measure_dirty_rates": [error] * 3}) as t:
        report = t.controllers.report
        assert report is not None
        assert (report.round_count, t.controllers.unprotected) == (1, False)


async def test_there_it_says_that_it_could_not_begin() -> None:
    async with trial(unpaused=True, errors={"measure_dirty_rates": [REFUSED]}) as t:
        assert t.controllers.unprotected
    async with trial(unpaused=True, entries=0) as t:
        assert not t.controllers.unprotected  # no ring can fill
    async with trial(errors={"measure_dirty_rates": [REFUSED]}) as t:
        assert not t.controllers.unprotected


async def test_there_a_refusal_on_the_way_does_not_end_it() -> None:
    async with trial(unpaused=True, errors={"measure_dirty_rates": [None, REFUSED]}) as t:
        await t.start()
        await t.time.pass_(5)
        report = await t.leave()
        assert (report.end, report.skipped_rounds) == (ReaperEnd.MIGRATION_ENDED, 1)
        assert report.round_count > 50


@pytest.mark.parametrize("able", [True, False])
async def test_there_a_guest_whose_rings_begin_to_fill_is_throttled_once(able: bool) -> None:
    fast = (1_000_000.0,)
    async with trial(unpaused=True, pages_per_s=fast, values={"auto_converge": able}) as t:
        await t.start()
        for at_ms in range(0, 3000, 100):
            await t.time.pass_(0.1)
            await t.controllers.on_sample(sample(at_ms=at_ms))
        (record,) = t.controllers.step_records
        assert record.number is None
        assert record.action.startswith("throttle the guest: set ")
        assert "full after one round" in record.reason
        if able:
            assert record.effect is StepEffect.DONE
            assert dict(t.qemu.writes)["cpu_throttle_initial_percent"] == 90
        else:
            assert (record.effect, t.qemu.writes) == (StepEffect.REFUSED, [])
            assert "auto_converge is off" in record.detail
        await t.leave()


async def test_elsewhere_nobody_is_throttled() -> None:
    async with trial(pages_per_s=(1_000_000.0,), values={"auto_converge": True}) as t:
        await t.start()
        await t.time.pass_(3)
        await t.controllers.on_sample(sample())
        assert t.controllers.step_records == ()
        await t.leave()


async def test_around_the_start_nobody_knows_for_how_long_pages_were_noted() -> None:
    """libvirt takes its time to start: what lay in the ring then is no sudden burst."""
    async with trial(pages_per_s=(40_000.0,)) as t:
        await t.time.pass_(5)
        t.controllers.migration_starts()
        await t.time.pass_(0.3)
        t.qemu.migrating = True
        await t.time.pass_(0.9)
        await t.controllers.on_sample(sample())
        await t.time.pass_(5)
        report = await t.leave()
        after = [each for each in report.rounds if each.at_ms > 0]
        assert min(each.interval_ms for each in after) > 500


async def test_a_long_setup_is_not_taken_for_a_quiet_guest() -> None:
    async with trial(pages_per_s=(150_000.0,)) as t:
        await t.time.pass_(5)
        t.controllers.migration_starts()
        await t.time.pass_(15)
        t.qemu.migrating = True
        await t.time.pass_(3)
        assert (await t.leave()).filled_rounds == 0


async def test_a_full_ring_is_a_full_ring_whenever_it_is_found() -> None:
    async with trial(pages_per_s=(0.0,)) as t:
        await t.time.pass_(5)
        t.controllers.migration_starts()
        t.qemu.migrating, t.qemu.pages_per_s = True, (400_000.0,)
        await t.time.pass_(5)
        report = await t.leave()
        assert report.filled_rounds > 1
        assert report.rounds[-1].interval_ms < 200


@pytest.mark.parametrize("told", [True, False], ids=["told by samples", "asked for"])
async def test_rings_that_the_migration_empties_as_well_are_not_called_full(told: bool) -> None:
    """Its last iterations follow each other so fast that a round counts several rings' worth."""
    async with trial(pages_per_s=(300_000.0,), slow_ms=400) as t:
        await t.start()
        for iteration in range(2, 60):
            await t.time.pass_(0.1)
            t.qemu.iteration = iteration
            if told:
                await t.controllers.on_sample(sample(iteration=iteration))
        report = await t.leave()
        assert report.fullest > 0.9
        assert report.filled_rounds == 0


async def test_a_full_ring_is_told_where_the_migration_cannot_be_asked() -> None:
    async with trial(pages_per_s=(400_000.0,), slow_ms=400) as t:
        await t.start()
        await t.time.pass_(2)
        t.qemu.errors["migration"] = [LOST] * 100
        before = t.controllers.report
        await t.time.pass_(3)
        assert before is not None
        assert (await t.leave()).filled_rounds > before.filled_rounds


async def test_it_ends_with_the_round_that_is_under_way() -> None:
    async with trial() as t:
        await t.start()
        while not t.qemu.measuring:
            await t.time.pass_(0.01)
        count = t.qemu.measurements
        report = await t.leave()
        assert not t.qemu.measuring
        assert report.end is ReaperEnd.MIGRATION_ENDED
        await t.time.pass_(5)
        assert t.qemu.measurements == count


async def test_it_does_not_wait_for_a_round_that_never_ends() -> None:
    async with trial() as t:
        await t.start()
        t.qemu.stuck = True
        while not t.qemu.measuring:
            await t.time.pass_(0.01)
        began = t.time.now()
        assert (await t.leave()).end is ReaperEnd.MIGRATION_ENDED
        assert t.time.now() - began < 3


async def test_a_round_that_never_ends_ends_the_reaper() -> None:
    async with trial() as t:
        await t.start()
        t.qemu.stuck = True
        await t.time.pass_(60)
        report = await t.leave()
        assert (report.end, "30 s" in report.reason) == (ReaperEnd.FAILED, True)


async def test_the_migration_waits_for_no_slow_first_round() -> None:
    time = MadeTime()
    qemu = MadeQemu(time, slow_ms=5000)
    controllers = Controllers(qemu, VM, reaper=ReaperSettings(), time=time)
    began = time.now()
    entering = asyncio.ensure_future(controllers.__aenter__())
    await time.until(entering)  # type: ignore[arg-type] # what it returns does not matter
    assert time.now() - began == pytest.approx(FIRST_ROUND_WITHIN_S, abs=0.05)
    controllers.migration_starts()
    leaving = asyncio.ensure_future(controllers.__aexit__(None, None, None))
    await time.until(leaving)
    report = controllers.report
    assert report is not None
    assert not report.throughout


@pytest.mark.parametrize("error", [BUSY, LOST, REFUSED, GONE])
async def test_the_migration_waits_for_no_second_try(error: VmtuneError) -> None:
    began = MadeTime().now()
    async with trial(errors={"measure_dirty_rates": [error]}) as t:
        assert t.time.now() - began < 0.01


async def test_somebody_elses_measurement_is_waited_for() -> None:
    async with trial(errors={"measure_dirty_rates": [BUSY, None, None, BUSY, BUSY]}) as t:
        await t.start()
        await t.time.pass_(10)
        report = await t.leave()
        assert (report.skipped_rounds, report.end) == (3, ReaperEnd.MIGRATION_ENDED)
        assert report.round_count > 5
        # The wait was not the rounds' fault, and is not held against them.
        assert max(each.cost_ms for each in report.rounds) < 20


@pytest.mark.parametrize(
    ("qemu", "reason"),
    [
        ({"entries": 0}, "no dirty ring"),
        ({"entries": -1}, "unknown: hidden"),
        ({"errors": {"measure_dirty_rates": [REFUSED]}}, "not enabled"),
        ({"errors": {"read": [RuntimeError("a fault of ours")]}}, "internal error"),
    ],
)
async def test_where_it_cannot_begin_it_says_why(qemu: dict[str, object], reason: str) -> None:
    async with trial(**qemu) as t:
        await t.start()
        await t.time.pass_(5)
        report = await t.leave()
        assert report.end is ReaperEnd.NOT_STARTED
        assert reason in report.reason
        assert not report.throughout
        assert t.qemu.measurements <= 1


async def test_a_refusal_on_the_way_ends_it_and_nothing_else() -> None:
    async with trial(errors={"measure_dirty_rates": [None, None, REFUSED]}) as t:
        await t.start()
        await t.time.pass_(10)
        report = await t.leave()
        assert (report.end, report.round_count) == (ReaperEnd.FAILED, 2)
        assert report.reason == REFUSED.message
        assert t.qemu.measurements == 3


@pytest.mark.parametrize("error", [LOST, HostUnreachable("away"), MonitorBusy("taken")])
@pytest.mark.parametrize("call", ["read", "measure_dirty_rates", "dirty_rates"])
async def test_a_lost_connection_is_tried_again(call: str, error: VmtuneError) -> None:
    async with trial(errors={call: [error, error]}) as t:
        await t.start()
        await t.time.pass_(0.1)
        assert t.controllers.report is not None
        assert t.controllers.report.reason == error.message
        await t.time.pass_(10)
        assert t.controllers.report.reason == ""
        report = await t.leave()
        assert (report.end, report.interruptions) == (ReaperEnd.MIGRATION_ENDED, 1)
        assert report.round_count > 3
        assert report.reason == ""
        assert not report.throughout


async def test_a_connection_that_stays_lost_ends_it() -> None:
    async with trial() as t:
        await t.start()
        t.qemu.errors["measure_dirty_rates"] = [LOST] * 1000
        await t.time.pass_(60)
        assert t.controllers.report is not None
        assert t.controllers.report.end is ReaperEnd.FAILED
        assert (await t.leave()).reason == LOST.message


@pytest.mark.parametrize("error", [GONE, CommandRefused("off", code="vm_not_running")])
async def test_a_vm_that_has_left_is_the_migrations_end(error: VmtuneError) -> None:
    async with trial() as t:
        await t.start()
        await t.time.pass_(3)
        t.qemu.errors["measure_dirty_rates"] = [error]
        await t.time.pass_(3)
        report = await t.leave()
        assert (report.end, report.reason) == (ReaperEnd.MIGRATION_ENDED, "")


async def test_in_postcopy_there_is_nothing_to_reap() -> None:
    async with trial() as t:
        await t.start()
        await t.time.pass_(3)
        await t.controllers.on_sample(sample(QemuStatus.POSTCOPY_ACTIVE, 3000))
        await t.time.pass_(0.2)
        count = t.qemu.measurements
        await t.time.pass_(10)
        assert t.qemu.measurements == count
        assert (await t.leave()).end is ReaperEnd.MIGRATION_ENDED


async def test_rounds_are_taken_piece_by_piece() -> None:
    async with trial() as t:
        await t.start()
        await t.time.pass_(4)
        first = t.controllers.take_rounds()
        await t.time.pass_(4)
        report = await t.leave()
        assert len(first) + len(report.rounds) == report.round_count
        assert report.rounds[0].at_ms > first[-1].at_ms
        assert t.controllers.latest_round == report.rounds[-1]


async def test_a_cancelled_migration_job_leaves_its_report_open() -> None:
    """The service stops; the migration goes on, and so will the reaper, in another process."""
    async with trial() as t:
        await t.start()
        await t.time.pass_(2)
        await t.controllers.__aexit__(asyncio.CancelledError, asyncio.CancelledError(), None)
        count = t.qemu.measurements
        await t.time.pass_(5)
        assert t.qemu.measurements == count
        assert t.controllers.report is not None
        assert t.controllers.report.end is ReaperEnd.RUNNING


async def test_another_process_goes_on_with_the_report() -> None:
    before = ReaperReport(
        "predict", 65536, ReaperEnd.RUNNING, round_count=40, rounds_before=2, fullest=0.7,
        shortest_interval_ms=60, longest_interval_ms=900, waits_ms=9000, costs_ms=100.0,
    )  # fmt: skip
    async with trial(past=Past(before), migrating=True) as t:
        t.controllers.migration_starts(t.time.now() - 60)
        await t.controllers.on_sample(sample(at_ms=60_000))
        await t.time.pass_(5)
        report = await t.leave()
        assert (report.end, report.interruptions) == (ReaperEnd.MIGRATION_ENDED, 1)
        assert report.rounds_before == 2
        assert report.round_count == 40 + len(report.rounds)
        assert 59_000 < report.rounds[0].at_ms < 61_000
        assert report.fullest >= 0.7
        assert not report.throughout
        assert t.qemu.calls[0] == "measure_dirty_rates"  # the size is known


@pytest.mark.parametrize("end", [ReaperEnd.FAILED, ReaperEnd.NOT_STARTED])
async def test_another_process_does_not_begin_what_had_ended(end: ReaperEnd) -> None:
    before = ReaperReport("predict", 65536, end, reason="refused")
    async with trial(past=Past(before), migrating=True) as t:
        t.controllers.migration_starts(t.time.now() - 60)
        await t.time.pass_(5)
        assert t.qemu.calls == []
        assert await t.leave() == before


async def test_without_settings_nothing_is_reaped() -> None:
    time = MadeTime()
    qemu = MadeQemu(time)
    async with Controllers(qemu, VM, time=time) as controllers:
        controllers.migration_starts()
        await time.pass_(5)
        await controllers.on_sample(sample())
    assert (controllers.report, controllers.latest_round) == (None, None)
    assert (controllers.take_rounds(), qemu.calls) == ([], [])


FAULTS = st.sampled_from([None, None, BUSY, REFUSED, GONE, LOST, RuntimeError("ours")])


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            call: st.lists(FAULTS, max_size=6)
            for call in ("read", "measure_dirty_rates", "dirty_rates")
        }
    ),
    st.sampled_from(ReaperPolicy),
    st.floats(0, 300),
)
def test_whatever_happens_nothing_is_raised_and_no_tracking_stays(
    errors: dict[str, list[VmtuneError | Exception | None]], policy: ReaperPolicy, slow_ms: float
) -> None:
    async def run() -> None:
        faults = {call: list(these) for call, these in errors.items()}
        async with trial(ReaperSettings(policy), errors=faults, slow_ms=slow_ms) as t:
            await t.start()
            await t.time.pass_(3)
            report = await t.leave()
            assert report.end is not ReaperEnd.RUNNING
            assert report.round_count == len(report.rounds) >= report.rounds_before
            assert bool(report.reason) or report.end is ReaperEnd.MIGRATION_ENDED
            await t.time.pass_(1)
            assert not t.qemu.measuring

    asyncio.run(run())

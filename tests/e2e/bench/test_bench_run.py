"""Runs of the migration benchmark, with real QEMUs and the lab's guest."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.drivers.bench_libvirt import running_lab
from tests.support.hosts.live import why_no_lab
from tests.support.qemus.qemu import Build, builds, installed, old
from vmtune.bench.migration.order import (
    DirectTestbed,
    LibvirtTestbed,
    Phase,
    RunOrder,
    RunProgress,
    RunResult,
)
from vmtune.bench.migration.runner import run_migration
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.table import METRICS, METRICS_OF, Group
from vmtune.bench.model.runs.run import HostSide, RunRecord, RunState
from vmtune.bench.model.scenario.migration import Scenario, Transport, VmShape
from vmtune.bench.model.scenario.parts import MIB
from vmtune.bench.reduce import reduce
from vmtune.bench.run_folder import clear_left_behind, processes_of
from vmtune.errors import SetupError
from vmtune.lab import status
from vmtune.lab.domain_xml import kvm_usable
from vmtune.model.migration.steps import AfterIterations, Step, StepAction
from vmtune.model.plan.outcome import Status
from vmtune.model.workload import Workload

NO_QEMU = installed().why_not
NO_KVM = "" if kvm_usable() else "this machine has no usable /dev/kvm"
pytestmark = pytest.mark.skipif(bool(NO_QEMU), reason=NO_QEMU or "never")

QUICK = Scenario(
    "test/quick",
    vm=VmShape(64 * MIB, 1),
    workload=Workload(16 * MIB, beat_ms=5),
    warmup_s=0,
    cooldown_s=0,
    max_seconds=60,
    max_iterations=10_000,
)
SLOW = {"max_bandwidth_bytes_per_s": 4 * MIB}
HALF_A_SECOND = {"max_bandwidth_bytes_per_s": 32 * MIB}
OF_OTHER_TUNABLES = {
    *("missed_zero_copy", "throttle_max_percent", "dirty_limit_throttle_ms"),
    *("dirty_limit_ring_full_ms", "ring_full_exits", "reaper_rounds"),
    *("postcopy_blocked_ms", "postcopy_vcpu_blocked_ms"),
    *("postcopy_latency_us", "postcopy_latency_p99_us"),
    *("sends", "sendmsg_cpu_ms_per_gib", "sendmsg_ms_per_gib"),
    *("zero_copy_flush_ms", "zero_copy_copied_percent"),
}


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder with a path short enough for sockets, empty afterwards."""
    with tempfile.TemporaryDirectory(prefix="vt-") as name:
        folder = Path(name) / "bench"
        yield folder
        assert not folder.exists()
        assert processes_of(Path(name)) == []


def direct(base: Path, build: Build | None = None) -> DirectTestbed:
    return DirectTestbed(Path((build or installed()).program), folder=base)


async def run(
    base: Path,
    scenario: Scenario,
    on_progress: Callable[[RunProgress], None] = lambda _: None,
    **order: Any,  # any: RunOrder's own fields
) -> RunResult:
    fields = {"testbed": direct(base), "kvm": False, **order}
    return await run_migration(RunOrder(scenario, **fields), on_progress)


def metrics(result: RunResult, scenario: Scenario) -> dict[str, float]:
    return reduce(result.record, result.state, scenario.values)


def check_timeline(record: RunRecord) -> None:
    """Everything is where it belongs, and in order."""
    assert record.migration_ms is not None
    assert record.migration_ended_ms is not None
    assert 0 < record.migration_ms <= record.migration_ended_ms <= record.ended_ms
    for moments in (
        [s.at_ms for s in record.samples],
        [s.at_ms for s in record.silences],
        [s.at_ms for s in record.cpu if s.side is HostSide.SOURCE],
    ):
        assert moments == sorted(moments)
        assert all(0 <= at <= record.ended_ms for at in moments)
    for sample in record.samples:
        assert record.migration_ms <= sample.at_ms <= record.migration_ended_ms + 1000
    for side in HostSide:
        totals = [s.total_ms for s in record.cpu if s.side is side]
        assert totals == sorted(totals)
    for earlier, later in zip(record.passes, record.passes[1:], strict=False):
        assert earlier.at_ms <= later.at_ms


def _of(group: Group) -> set[str]:
    return {name for name, metric in METRICS.items() if metric.group is group}


ACCELERATORS = [
    pytest.param(True, id="kvm", marks=pytest.mark.skipif(bool(NO_KVM), reason=NO_KVM or "-")),
    pytest.param(False, id="tcg"),
]


async def test_a_warm_up_may_end_before_the_pace_of_a_slow_guest_is_known(base: Path) -> None:
    a_minute_a_pass = Workload(16 * MIB, dirty_mb_per_s=1, idle_ms=60_000, beat_ms=5)
    scenario = replace(QUICK, workload=a_minute_a_pass, warmup_s=1)
    result = await run(base, scenario, knows_pace=False)
    assert (result.state, result.failure) == (RunState.COMPLETED, "")
    assert result.record.migration_ms is not None
    assert 1000 <= result.record.migration_ms < 25_000  # else it waits for 31 s


@pytest.mark.parametrize("kvm", ACCELERATORS)
@pytest.mark.parametrize("build", builds(), ids=lambda build: build.label)
async def test_a_run_is_measured_whole(base: Path, build: Build, kvm: bool) -> None:
    if build.why_not:
        pytest.skip(build.why_not)
    values = {"multifd": True, "multifd_channels": 2, "downtime_limit_ms": 500}
    scenario = replace(QUICK, values=values, vm=VmShape(64 * MIB, 2), cooldown_s=2)
    told: list[RunProgress] = []
    result = await run(base, scenario, told.append, testbed=direct(base, build), kvm=kvm)
    assert (result.state, result.failure, result.kvm) == (RunState.COMPLETED, "", kvm)
    check_timeline(result.record)

    found = metrics(result, scenario)
    of_migrations = METRICS_OF[ScenarioKind.MIGRATION]
    assert of_migrations.keys() - found.keys() == OF_OTHER_TUNABLES
    assert found["total_time_ms"] <= found["elapsed_ms"]
    # On a busy machine the guest may be no slower in the migration than it was before.
    for name in _of(Group.GUEST) - OF_OTHER_TUNABLES - {"guest_excess_ms", "guest_drop_ms"}:
        assert found[name] > 0, name
    assert found["source_cpu_vcpu_ms"] > 0
    for side in HostSide:  # threads that no look has met count as the migration's
        assert found[f"{side}_cpu_multifd_ms"] + found[f"{side}_cpu_migration_ms"] > 0
    assert {o.tunable: o.status for o in result.record.outcomes} == dict.fromkeys(
        values, Status.EFFECTIVE
    )

    # Both workers were heard, on both sides.
    ended = result.record.migration_ended_ms
    assert ended is not None
    assert {p.worker for p in result.record.passes if p.at_ms > ended} == {0, 1}
    assert sum(p.written_bytes for p in result.record.passes[:1]) == 8 * MIB

    shares = [progress.share for progress in told]
    assert shares == sorted(shares)
    assert list(dict.fromkeys(progress.phase for progress in told)) == list(Phase)


@pytest.mark.parametrize(
    ("limits", "why"),
    [({"max_seconds": 1}, "within 1 s"), ({"max_iterations": 2}, "within 2 iterations")],
)
async def test_one_that_does_not_converge_is_cancelled_and_kept(
    base: Path, limits: dict[str, int], why: str
) -> None:
    # An iteration takes a quarter of a second, and the guest needs a millisecond for its part.
    values = {"max_bandwidth_bytes_per_s": 4 * MIB, "downtime_limit_ms": 1}
    workload = Workload(MIB, beat_ms=5)
    scenario = replace(QUICK, values=values, workload=workload, **limits)
    result = await run(base, scenario)
    assert result.state is RunState.NOT_CONVERGED, result.failure
    assert why in result.failure
    check_timeline(result.record)
    assert result.record.samples
    found = metrics(result, scenario)
    assert found["converged"] == 0
    assert found["elapsed_ms"] > 0
    assert "total_time_ms" not in found
    assert found["transferred_bytes"] > 0


def kill_qemu(base: Path, side: HostSide) -> None:
    for pid in processes_of(base):
        with contextlib.suppress(OSError):
            incoming = b"-incoming" in Path(f"/proc/{pid}/cmdline").read_bytes()
            if incoming == (side is HostSide.DESTINATION):
                os.kill(pid, signal.SIGKILL)


async def test_a_source_that_dies_in_warm_up_is_a_result_too(base: Path) -> None:
    def kill(progress: RunProgress) -> None:
        if progress.phase is Phase.WARM_UP and progress.at_ms:
            kill_qemu(base, HostSide.SOURCE)

    result = await run(base, replace(QUICK, warmup_s=60), kill)
    assert result.state is RunState.FAILED
    assert "source: QEMU died of SIGKILL" in result.failure
    assert result.record.migration_ms is None
    found = metrics(result, QUICK)
    assert found.pop("converged") == 0
    assert found.keys() <= {"guest_baseline_ms_per_gib"}


@pytest.mark.parametrize("side", HostSide)
async def test_a_qemu_that_dies_is_a_result_with_its_last_words(base: Path, side: HostSide) -> None:
    def kill(progress: RunProgress) -> None:
        if progress.sample is not None and progress.sample.iteration:
            kill_qemu(base, side)

    scenario = replace(QUICK, values=SLOW)
    result = await run(base, scenario, kill)
    assert result.state is RunState.FAILED
    assert f"{side.value}: QEMU died of SIGKILL" in result.failure
    check_timeline(result.record)
    assert result.record.samples
    found = metrics(result, scenario)
    assert found["converged"] == 0
    assert "total_time_ms" not in found
    assert found["guest_baseline_ms_per_gib"] > 0


async def test_what_the_preflight_forbids_is_a_failure_that_says_why(base: Path) -> None:
    if old().why_not:
        pytest.skip(old().why_not)
    scenario = replace(QUICK, values={"zero_page_detection": "none"})
    result = await run(base, scenario, testbed=direct(base, old()))
    assert result.state is RunState.FAILED
    assert "zero_page_detection" in result.failure
    assert result.record.migration_ms is None
    found = metrics(result, scenario)
    assert found.pop("converged") == 0
    assert found.keys() <= {"guest_baseline_ms_per_gib"}


async def test_a_paused_guest_goes_on_where_it_has_arrived(base: Path) -> None:
    at_once = Step(AfterIterations(0), StepAction.PAUSE)
    scenario = replace(
        QUICK, steps=(at_once,), transport=Transport.UNIX, cooldown_s=1, values=HALF_A_SECOND
    )
    result = await run(base, scenario)
    assert result.state is RunState.COMPLETED, result.failure
    assert [step.number for step in result.record.steps] == [0]
    ended = result.record.migration_ended_ms
    assert ended is not None
    assert any(p.at_ms > ended for p in result.record.passes)
    # It stood still from the pause to its arrival.
    assert metrics(result, scenario)["guest_silence_ms"] > 100


async def test_a_migration_that_a_step_aborts_has_not_converged(base: Path) -> None:
    abort = Step(AfterIterations(0), StepAction.ABORT)
    result = await run(base, replace(QUICK, steps=(abort,), values=SLOW))
    assert result.state is RunState.NOT_CONVERGED
    assert "a step aborted it" in result.failure


@pytest.mark.skipif(bool(NO_KVM), reason=NO_KVM or "never")
async def test_full_rings_are_counted_and_the_reaper_is_proven(base: Path) -> None:
    values = {
        "dirty_ring_size_entries": 4096,
        "reaper_policy": "predict",
        "downtime_limit_ms": 2000,
    }
    scenario = replace(QUICK, values=values, count_ring_full=True)
    result = await run(base, scenario, kvm=True)
    record = result.record
    assert result.state is RunState.COMPLETED, result.failure
    assert record.ring_full_exits is not None
    assert record.reaper is not None
    assert record.reaper.ring_full_exits == record.ring_full_exits
    assert record.reaper.rounds_before > 0
    assert record.migration_ms is not None
    # Rounds are on the run's timeline too: the first came before the migration, not before 0.
    assert 0 < record.reaper.rounds[0].at_ms <= record.migration_ms
    statuses = {o.tunable: o.status for o in record.outcomes}
    assert statuses == dict.fromkeys(values, Status.EFFECTIVE)
    found = metrics(result, scenario)
    assert found["reaper_rounds"] == record.reaper.round_count > 0


async def test_cancelling_ends_everything(base: Path) -> None:
    migrating = asyncio.Event()

    def on_progress(progress: RunProgress) -> None:
        if progress.sample is not None:
            migrating.set()

    task = asyncio.create_task(run(base, replace(QUICK, values=SLOW), on_progress))
    async with asyncio.timeout(60):
        await migrating.wait()
    assert len(processes_of(base)) == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_of(base) == []


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.e2e.bench.test_bench_run import QUICK, SLOW, direct, run
from dataclasses import replace

def told(progress):
    if progress.sample is not None:
        print("migrating", flush=True)

asyncio.run(run(Path(sys.argv[1]), replace(QUICK, values=SLOW), told))
"""


def test_a_killed_benchmark_leaves_no_qemu_and_the_next_clears_its_folder(base: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(base)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"migrating\n"
        qemus = processes_of(base)
        assert len(qemus) >= 2
        process.kill()
    while any(Path(f"/proc/{pid}").exists() for pid in qemus):
        pass  # the kernel kills them; this ends only when it has
    assert len(list(base.iterdir())) == 1
    asyncio.run(run(base, QUICK))


@pytest.mark.skipif(bool(why_no_lab()), reason=why_no_lab() or "never")
@pytest.mark.parametrize("converges", [True, False])
async def test_on_libvirts_hosts(base: Path, converges: bool) -> None:
    lab = await asyncio.to_thread(running_lab)
    vms = await asyncio.to_thread(status, lab)
    values: dict[str, Any] = SLOW
    if converges:
        values = {"downtime_limit_ms": 700, "announce_rounds": 3}
        ring = {"dirty_ring_size_entries": 4096, "reaper_policy": "predict"}
        values |= {} if NO_KVM else ring
    scenario = replace(QUICK, values=values, max_seconds=60 if converges else 1, cooldown_s=1)
    counted = replace(scenario, count_ring_full="reaper_policy" in values)
    result = await run(base, counted, testbed=LibvirtTestbed(lab), kvm=not NO_KVM and converges)
    expected = RunState.COMPLETED if converges else RunState.NOT_CONVERGED
    assert result.state is expected, result.failure
    check_timeline(result.record)
    statuses = {o.tunable: o.status for o in result.record.outcomes}
    assert statuses == dict.fromkeys(values, Status.EFFECTIVE)
    found = metrics(result, scenario)
    assert found["source_cpu_vcpu_ms"] > 0
    assert found["destination_cpu_other_ms"] > 0
    assert found["guest_silence_ms"] > 0
    assert ("ring_full_exits" in found) == counted.count_ring_full
    ended = result.record.migration_ended_ms
    assert ended is not None
    assert any(p.at_ms > ended for p in result.record.passes)
    assert await asyncio.to_thread(status, lab) == vms
    assert await asyncio.to_thread(lambda: [*lab.folder.rglob("*bench*")]) == []


@pytest.mark.parametrize(
    ("program", "code"), [("no-such-qemu", "program_missing"), ("false", "qemu_did_not_start")]
)
async def test_without_a_qemu_there_is_no_run(base: Path, program: str, code: str) -> None:
    with pytest.raises(SetupError) as caught:
        await run(base, QUICK, testbed=DirectTestbed(Path(program), folder=base))
    assert caught.value.problems[0].code == code
    clear_left_behind(base)


async def test_a_scenario_that_needs_kvm_says_so(base: Path) -> None:
    scenario = replace(QUICK, values={"dirty_ring_size_entries": 4096})
    with pytest.raises(SetupError) as caught:
        await run(base, scenario, kvm=False)
    assert caught.value.problems[0].code == "needs_kvm"

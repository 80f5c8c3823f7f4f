"""How the patch counts and shrinks the coroutine pool: its lines, compiled, in a small world.

The world is patched_pool.c: threads in turns, event loops with a clock that is told, pools of
batches of 8. Thread 0 is the main thread, 1 and 2 are iothreads, 3 a vCPU, 4 has no event loop.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.packaging.test_patched_qemu import PATCH

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

PERIOD_S = 15
MAIN, FIRST, SECOND, VCPU, OTHER = range(5)
BATCHES = 2 * 8
"""What a thread may keep in its own pool."""

Act = tuple[str, int]


@dataclass(frozen=True)
class State:
    """After one act: the object's counters, and what the world itself has counted."""

    in_use: int
    pooled: int
    peak: int
    created: int
    there: int
    used: int
    timers: int


def new_file(name: str) -> str:
    found = re.search(rf"^\+\+\+ b/{re.escape(name)}\n@@.*\n((?:\+.*\n)+)", PATCH, re.MULTILINE)
    assert found
    return "".join(line[1:] + "\n" for line in found[1].splitlines())


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pool")
    (folder / "vmtune.h").write_text(new_file("include/qemu/vmtune.h"))
    (folder / "vmtune-pool.c.inc").write_text(new_file("util/vmtune-pool.c.inc"))
    world = Path(__file__).with_name("patched_pool.c")
    command = ["gcc", "-O1", "-g", "-Wall", "-Werror", "-I", str(folder), "-o", "pool", str(world)]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return folder / "pool"


def run(program: Path, acts: Sequence[Act]) -> list[State]:
    said = "".join(f"{what} {value}\n" for what, value in acts)
    ran = subprocess.run(
        [program], input=said, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    found = [State(*map(int, line.split())) for line in ran.stdout.splitlines()]
    assert len(found) == len(acts)
    return found


def burst(thread: int, many: int) -> list[Act]:
    return [("thread", thread), ("take", many), ("give", many)]


PERIOD = ("period", PERIOD_S)
PASS = ("pass", PERIOD_S * 1000)
SET = [("thread", MAIN), ("take", 1), PERIOD, ("pass", 0)]
"""The main loop's own coroutine, and the periods begin."""


def test_a_burst_is_kept_for_the_period_after_it_and_then_freed(program: Path) -> None:
    seen = run(program, [*SET, *burst(FIRST, 100), PASS, PASS, PASS])
    assert [each.pooled for each in seen[-4:]] == [100, 100, 0, 0]


def test_the_timer_stops_at_an_empty_pool_and_starts_with_the_next_coroutine(
    program: Path,
) -> None:
    seen = run(program, [*SET, *burst(FIRST, 20), PASS, PASS, PASS, *burst(FIRST, 1), PASS, PASS])
    assert [each.timers for each in seen[-6:]] == [0, 0, 1, 1, 1, 0]
    assert seen[-1].pooled == 0


def test_who_needs_as_many_in_each_period_makes_no_new_ones(program: Path) -> None:
    # The coroutines in use when a period ends differ, and so does what is in which pool.
    acts = list(SET)
    for held in (0, 30, 100, 7, 64, 0, 99):
        acts += [("thread", FIRST), ("take", 100), ("give", 100 - held), PASS, ("give", held)]
    seen = run(program, acts)
    assert seen[-1].created == 101


def test_each_loop_is_resized_by_its_own_peak(program: Path) -> None:
    # One loop's burst and then another's: both are kept, as each may come again.
    seen = run(program, [*SET, *burst(FIRST, 60), *burst(SECOND, 80), PASS])
    assert seen[-1].peak <= 60 + 80 + 1
    # The second took what the first gave back, but for what the first's own pool holds.
    assert 80 <= seen[-1].pooled <= 80 + BATCHES
    # One rests while the other goes on: what the first needed goes, what the second needs stays.
    acts = [("thread", FIRST), ("take", 60), ("thread", SECOND), ("take", 80), ("give", 80)]
    acts += [("thread", FIRST), ("give", 60)]
    for _ in range(3):
        acts += [PASS, *burst(SECOND, 80)]
    seen = run(program, [*SET, *acts])
    assert 80 <= seen[-1].pooled <= 80 + BATCHES
    assert seen[-1].created <= 60 + 80 + 1 + BATCHES


@pytest.mark.parametrize("minimum", [0, 1, 10, 60, 200])
def test_the_minimum_is_left_and_goes_when_it_is_lowered(program: Path, minimum: int) -> None:
    down = [("minimum", 0), PASS]
    seen = run(program, [*SET, ("minimum", minimum), *burst(FIRST, 100), PASS, PASS, PASS, *down])
    left = seen[-3]
    assert left.there == min(max(minimum, 1), 101)
    assert left.timers == 0, "the timer goes on although there is nothing to free"
    assert (seen[-1].pooled, seen[-1].timers) == (0, 0)


@pytest.mark.parametrize("freed", [0, 1, 5, 7])
def test_two_loops_that_free_at_the_same_time_leave_the_minimum(program: Path, freed: int) -> None:
    """The periods of all loops end together, and one's ends while another frees."""
    acts = [*burst(FIRST, 16), *burst(SECOND, 16), ("interrupt", freed), PASS, PASS, PASS]
    assert run(program, [*SET, ("minimum", 10), *acts])[-1].there == 10


def test_a_vcpu_counts_for_the_main_loop(program: Path) -> None:
    acts = list(SET)
    for _ in range(20):
        acts += [("thread", VCPU), ("take", 10), ("thread", MAIN), ("give", 10)]
    acts += [PASS, PASS, PASS]
    seen = run(program, acts)
    assert seen[-4].in_use == 1
    assert seen[-4].peak == 11
    assert seen[-1].pooled <= BATCHES  # in the vCPU's own pool
    assert seen[-1].timers == 0


def test_coroutines_that_move_leave_nothing_behind(program: Path) -> None:
    acts = list(SET)
    for _ in range(50):
        acts += [("thread", MAIN), ("take", 20), ("thread", FIRST), ("give", 20), ("pass", 1000)]
    seen = run(program, [*acts, PASS, PASS, PASS])
    assert max(each.there for each in seen) <= 1 + 20 + 2 * BATCHES
    assert (seen[-1].in_use, seen[-1].timers) == (1, 0)
    assert seen[-1].pooled == 0


def test_without_a_period_nothing_is_freed_and_no_timer_runs(program: Path) -> None:
    rest = [("pass", 100_000)]
    seen = run(program, [*burst(FIRST, 300), *rest, ("minimum", 5), *rest, ("period", 0), *rest])
    assert {each.timers for each in seen} == {0}
    assert seen[-1].pooled == 300
    seen = run(program, [*SET, *burst(FIRST, 300), ("period", 0), *rest])
    assert (seen[-1].pooled, seen[-1].timers) == (300, 0)


acts = st.lists(
    st.one_of(
        st.tuples(st.just("thread"), st.integers(MAIN, OTHER)),
        st.tuples(st.just("take"), st.integers(1, 60)),
        st.tuples(st.just("give"), st.integers(1, 60)),
        st.tuples(st.just("pass"), st.sampled_from([0, 1, 900, 1000, 15_000])),
        st.tuples(st.just("period"), st.sampled_from([0, 1, 15])),
        st.tuples(st.just("minimum"), st.sampled_from([0, 3, 40])),
        st.tuples(st.just("limit"), st.sampled_from([0, 1, 20, 5000])),
        st.tuples(st.just("end"), st.just(0)),
    ),
    max_size=60,
)


def only_threads_that_may(drawn: Sequence[Act]) -> list[Act]:
    """Neither the main thread nor a vCPU ends here."""
    thread, kept = MAIN, []
    for what, value in drawn:
        thread = value if what == "thread" else thread
        if what != "end" or thread in {FIRST, SECOND, OTHER}:
            kept.append((what, value))
    return kept


def test_the_main_loop_frees_what_a_thread_without_one_left(program: Path) -> None:
    """Also where it has had no coroutine of its own."""
    seen = run(program, [*burst(OTHER, 33), ("period", 1), PASS])
    assert seen[-2].pooled == 33
    assert seen[-1].pooled <= BATCHES


@given(drawn=acts)
def test_whatever_happens_all_are_counted_and_the_pool_shrinks(
    program: Path, drawn: list[Act]
) -> None:
    done = only_threads_that_may(drawn)
    rest = [("limit", 0), ("minimum", 7), ("period", 1), *[("pass", 1000)] * 4, ("pass", 100)]
    seen = run(program, [*done, *rest])
    for (what, _), before, after in zip([*done, *rest][1:], seen, seen[1:], strict=False):
        assert after.in_use == after.used
        assert after.in_use + after.pooled == after.there
        if what == "pass":
            assert after.created == before.created
    limit, minimum, was = 0, 0, None
    for (what, value), state in zip(done, seen, strict=False):
        limit = value if what == "limit" else limit
        minimum = value if what == "minimum" else minimum
        if limit and what in {"give", "pass"} and was is not None:
            assert state.pooled <= max(limit, was.pooled)
        if what == "pass" and not limit and was is not None:
            assert state.there >= min(was.there, minimum)
        was = state
    last = seen[-1]
    assert last.timers == 0
    # A vCPU's own pool, and that of a thread with no event loop, stay until they are used.
    assert last.pooled <= max(7 - last.in_use, 0) + 2 * BATCHES


def test_a_limit_is_kept_to_at_once(program: Path) -> None:
    seen = run(program, [*SET, *burst(FIRST, 100), ("limit", 30), ("pass", 5), *burst(SECOND, 90)])
    assert seen[-4].pooled <= 30
    assert seen[-1].pooled <= 30

"""The object x-vmtune of a real patched QEMU: what it accepts, what it does, and that QEMU is as
ever without it. Where no patched QEMU is built, all of this is skipped and says so."""

from __future__ import annotations

import itertools
import random
import shutil
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.perf.pools.patched_pool import load
from tests.perf.pools.pool_model import Monitor, exports
from tests.support.qemus.map_count import map_count_held
from tests.support.qemus.patched_build import OBJECT, TYPE, patched
from tests.support.qemus.qemu import RunningQemu, running
from tests.support.simulated.patched_qemu import (
    COUNTERS,
    POLICIES,
    RANGES,
    READ_ONLY,
    SENDS,
    SETTABLE,
)
from vmtune.hypervisor.linux.qemu_process import QemuProcess
from vmtune.lab.domain_xml import kvm_usable
from vmtune.packs import shipped

WHY_NOT = patched().why_not
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never")
NO_KVM = "" if kvm_usable() else "a dirty ring takes KVM, and there is no usable /dev/kvm"
NO_FIO = "" if shutil.which("fio") else "fio is not installed: run vmtune/lab/bootstrap.sh --tests"

BARE = (
    "-machine", "none", "-accel", "tcg", "-nodefaults", "-display", "none",
    "-object", "iothread,id=iothread0", "-object", "iothread,id=iothread1",
)  # fmt: skip
LOOPS = ("main", "iothread0", "iothread1")
PATIENCE_S = 30


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"still waiting for {what}"
        time.sleep(0.01)


class Refusing(Monitor):
    """A monitor whose refusals are answers."""

    def refusal(self, command: str, **arguments: Any) -> str:
        """What QEMU says against it; empty where it does it."""
        try:
            self.execute(command, **arguments)
        except AssertionError as refused:
            return str(refused.args[0]["error"]["desc"])
        return ""

    def make(self) -> None:
        self.execute("object-add", **{"qom-type": TYPE, "id": "vmtune"})

    def set(self, name: str, value: Any) -> None:
        self.execute("qom-set", path=OBJECT, property=name, value=value)

    def get(self, name: str) -> Any:
        return self.execute("qom-get", path=OBJECT, property=name)

    def settings(self) -> Mapping[str, Any]:
        return {name: self.get(name) for name in SETTABLE}


@contextmanager
def started(
    folder: Path, *machine: str, within: Sequence[str] = ()
) -> Iterator[tuple[RunningQemu, Refusing]]:
    """A patched QEMU that must still be alive in the end."""
    more = folder / "more.sock"
    folder.mkdir(parents=True, exist_ok=True)
    extra = ("-qmp", f"unix:{more},server=on,wait=off")
    with running(
        patched(), folder / "qmp", machine=machine or BARE, extra=extra, within=within
    ) as qemu:
        with Refusing(more) as monitor:
            yield qemu, monitor
        assert qemu.process.poll() is None, qemu.said()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refusing]:
    with started(tmp_path_factory.mktemp("bare")) as (_, made):
        yield made


@pytest.fixture
def monitor(bare: Refusing) -> Iterator[Refusing]:
    """With a fresh object."""
    bare.make()
    yield bare
    bare.execute("object-del", id="vmtune")


def test_the_properties_are_those_that_the_fake_and_the_pack_have(monitor: Refusing) -> None:
    listed = monitor.execute("qom-list-properties", typename=TYPE)
    ours = {row["name"] for row in listed} - {"type"}
    assert ours == {*SETTABLE, *READ_ONLY}
    rows = tomllib.loads(shipped()["qemu-patched"].read_text())["tunable"]
    assert {row["qom"]["property"] for row in rows} == ours
    members = [row["qom"]["member"] for row in rows if row["qom"]["property"] == "sends"]
    assert members == list(SENDS)
    assert set(members) == set(monitor.get("sends"))
    defaults = {row["qom"]["property"]: row["default"] for row in rows if "default" in row}
    assert defaults == SETTABLE == monitor.settings()


@pytest.mark.parametrize("name", RANGES)
@map_count_held()
def test_values_outside_of_its_range_are_refused(monitor: Refusing, name: str) -> None:
    least, most = RANGES[name]
    if name == "pool-hard-limit":  # as far as vm.max_map_count has room, util/qemu-coroutine.c
        room = (int(Path("/proc/sys/vm/max_map_count").read_text()) - 5000) // 2
        most = min(most, max(0, room))
    before = monitor.get(name)
    for wrong in (least - 1, most + 1, -1, 1 << 40):
        said = monitor.refusal("qom-set", path=OBJECT, property=name, value=wrong)
        assert said == f"{name} expects a value between {least} and {most}, not {wrong}"
    assert name in monitor.refusal("qom-set", path=OBJECT, property=name, value="many")
    assert monitor.get(name) == before
    for right in (least, most, before):
        monitor.set(name, right)
        assert monitor.get(name) == right


def test_an_unknown_policy_is_refused_and_counters_cannot_be_set(monitor: Refusing) -> None:
    said = monitor.refusal("qom-set", path=OBJECT, property="reaper-policy", value="fast")
    assert said == "reaper-policy expects stock, fixed, levels or aimd, not 'fast'"
    for policy in POLICIES[::-1]:
        monitor.set("reaper-policy", policy)
        assert monitor.get("reaper-policy") == policy
    for name in COUNTERS:
        assert monitor.get(name) >= 0
        assert monitor.refusal("qom-set", path=OBJECT, property=name, value=1)
    assert set(monitor.get("sends").values()) == {0}  # nothing has migrated
    assert monitor.refusal("qom-set", path=OBJECT, property="sends", value={})


def test_the_interval_is_the_policys_within_its_bounds(monitor: Refusing) -> None:
    monitor.set("reaper-interval-min", 20_000)
    assert monitor.get("reaper-interval") == 1_000_000  # stock
    # Nothing is tracked, so that fixed waits its second.
    for policy, interval in (("fixed", 1_000_000), ("levels", 80_000), ("aimd", 100_000)):
        monitor.set("reaper-policy", policy)
        assert monitor.get("reaper-interval") == interval
    monitor.set("reaper-interval-max", 90_000)
    assert monitor.get("reaper-interval") == 90_000
    monitor.set("reaper-interval-min", 95_000)  # in whichever order they come: the least holds
    assert monitor.get("reaper-interval") == 95_000


def test_deleted_it_leaves_all_as_it_was_and_it_can_come_back(tmp_path: Path) -> None:
    with started(tmp_path) as (_, monitor):
        monitor.make()
        one_more = {"qom-type": TYPE, "id": "another"}
        assert TYPE in monitor.refusal("object-add", **one_more)
        for name, value in {"reaper-policy": "aimd", "pool-resize-period": 1}.items():
            monitor.set(name, value)
        for name in ("reaper-interval-min", "reaper-interval-max", "pool-hard-limit"):
            monitor.set(name, 777)
        monitor.execute("object-del", id="vmtune")
        monitor.make()
        assert monitor.settings() == SETTABLE


@pytest.mark.skipif(bool(NO_KVM), reason=NO_KVM or "never")
def test_the_reaper_goes_by_its_policy_at_once(tmp_path: Path) -> None:
    """No guest has to run: the reaper makes its rounds all the same. ``fixed`` makes them only
    while dirty pages are tracked."""
    ring = ("-machine", "pc", "-accel", "kvm,dirty-ring-size=4096", "-cpu", "qemu64", "-m", "32",
            "-nodefaults", "-display", "none", "-S")  # fmt: skip
    with started(tmp_path, *ring) as (_, monitor):
        monitor.make()
        monitor.set("reaper-interval-min", 1000)
        monitor.set("reaper-policy", "fixed")
        assert monitor.get("reaper-interval") == 1_000_000
        rounds = monitor.get("reaper-rounds")
        monitor.execute("calc-dirty-rate", **{"calc-time": 1, "mode": "dirty-ring"})
        wait_for(lambda: monitor.get("reaper-rounds") >= rounds + 100, "a hundred rounds")
        monitor.execute("cont")  # tracking ends with the measurement, but in a VM that runs
        wait_for(lambda: monitor.get("reaper-interval") == 1_000_000, "fixed to rest")
        # Nothing is tracked, so the policies slow down.
        monitor.set("reaper-policy", "aimd")
        wait_for(lambda: monitor.get("reaper-interval") >= 160_000, "aimd to slow down")
        monitor.set("reaper-policy", "levels")
        assert monitor.get("reaper-interval") in (80_000, 100_000)
        seen = []
        wait_for(
            lambda: bool(seen.append(monitor.get("reaper-interval"))) or seen[-1] >= 250_000,
            "levels to slow down",
        )
        assert [key for key, _ in itertools.groupby(seen)] == [80_000, 100_000, 125_000, 250_000]
        assert monitor.get("ring-full-exits") == 0
        monitor.set("reaper-interval-min", 1000)
        monitor.set("reaper-policy", "fixed")
        monitor.execute("object-del", id="vmtune")
        monitor.make()
        rounds = monitor.get("reaper-rounds")
        assert monitor.get("reaper-interval") == 1_000_000
        monitor.set("reaper-policy", "fixed")  # a reaper that waits its second is woken
        wait_for(lambda: monitor.get("reaper-rounds") > rounds + 1, "the reaper to wake")


@pytest.mark.skipif(bool(NO_KVM), reason=NO_KVM or "never")
def test_the_command_line_keeps_its_values_over_a_restart(tmp_path: Path) -> None:
    machine = ("-machine", "pc", "-accel", "kvm,dirty-ring-size=4096", "-cpu", "qemu64", "-m", "32",
               "-nodefaults", "-display", "none", "-S", "-object",
               f"{TYPE},id=vmtune,reaper-policy=levels,reaper-interval-min=90000,"
               "pool-hard-limit=300,pool-resize-period=7,pool-minimum=9")  # fmt: skip
    with started(tmp_path, *machine) as (_, monitor):
        assert monitor.settings() == {
            "reaper-policy": "levels", "reaper-interval-min": 90_000,
            "reaper-interval-max": 1_000_000, "pool-hard-limit": 300, "pool-resize-period": 7,
            "pool-minimum": 9,
        }  # fmt: skip
        assert monitor.get("reaper-interval") >= 90_000


def test_its_program_says_that_it_lives_through_short_resets(tmp_path: Path) -> None:
    with started(tmp_path) as (qemu, monitor):
        monitor.make()
        assert QemuProcess(qemu.pid).aborts_on_short_reset() is False
        assert monitor.get("short-ring-resets") == 0


@pytest.mark.skipif(bool(NO_FIO), reason=NO_FIO or "never")
def test_the_pool_keeps_to_its_limit_and_shrinks(tmp_path: Path) -> None:
    with started(tmp_path) as (qemu, monitor):
        process = QemuProcess(qemu.pid)

        def stacks() -> int:
            maps = process.maps()
            assert maps is not None
            return maps.stacks

        def now(name: str) -> int:
            return int(monitor.get(f"coroutines-{name}"))

        def at_rest() -> tuple[int, int]:
            """How many there are, and how many were ever made. Each is read at its own moment, and
            a request that ends changes them: twice the same was at rest."""
            names = "pooled", "in-use", "created"
            before = None
            while (found := [now(name) for name in names]) != before:
                before = found
            return found[0] + found[1], found[2]

        def under_load() -> None:
            fio = load(socket, 1)
            assert fio.wait(PATIENCE_S) == 0, (tmp_path / "fio.err").read_text()
            wait_for(lambda: now("in-use") <= 4, "the requests to end")

        monitor.make()
        with exports(qemu, tmp_path, ["iothread0"], 1_000_000) as socket:
            under_load()
            kept, peak = now("pooled"), now("peak")
            # Of 16 connections with up to 16 requests each; how many of them meet differs.
            assert peak > 128
            assert kept > 128  # more than one batch: what QEMU keeps by itself
            assert abs(stacks() - kept) <= 8
            assert now("created") >= kept

            monitor.set("pool-hard-limit", 100)  # what is above it goes at once, from everywhere
            wait_for(lambda: now("pooled") <= 100, "the pool to heed its limit")
            under_load()
            assert now("pooled") <= 100
            monitor.set("pool-hard-limit", 5000)  # above QEMU's own 128, too
            there, made = at_rest()
            under_load()
            after, more = at_rest()
            assert more > made
            assert after == there + more - made

            monitor.set("pool-hard-limit", 0)
            monitor.set("pool-minimum", 60)  # is left, and no more of it
            monitor.set("pool-resize-period", 1)
            wait_for(lambda: now("in-use") + now("pooled") <= 60, "the pool to shrink")
            made = now("created")
            wait_for(lambda: now("peak") <= 8, "a period to end after that")
            there, _ = at_rest()
            assert there == 60
            assert now("created") == made
            monitor.set("pool-minimum", 0)
            wait_for(lambda: now("pooled") <= 4, "the pool to shrink to what is needed")
            wait_for(lambda: stacks() <= 8, "the stacks to be gone")
            assert now("peak") <= 8


@pytest.mark.skipif(bool(NO_FIO), reason=NO_FIO or "never")
def test_nothing_breaks_when_all_is_set_anew_under_load(tmp_path: Path) -> None:
    """Three event loops under load while settings come and go, the object with them, and the
    period ends every second; then every coroutine is accounted for."""
    chance = random.Random(20261122)
    with started(tmp_path) as (qemu, monitor):
        monitor.make()
        with exports(qemu, tmp_path, LOOPS, 200_000) as socket:
            fios = []
            for loop in LOOPS:
                own = tmp_path / loop
                own.mkdir()
                (own / "nbd.sock").symlink_to(socket)
                fios.append(load(own / "nbd.sock", 3, loop))
            while any(fio.poll() is None for fio in fios):
                monitor.set("pool-hard-limit", chance.choice([0, 1, 16, 200, 4000]))
                monitor.set("pool-resize-period", chance.choice([0, 1]))
                monitor.set("reaper-policy", chance.choice(POLICIES))
                assert monitor.get("coroutines-pooled") >= 0
                if chance.random() < 0.05:
                    monitor.execute("object-del", id="vmtune")
                    monitor.make()
                time.sleep(0.002)
            assert [fio.returncode for fio in fios] == [0, 0, 0]
        monitor.set("pool-hard-limit", 1)
        wait_for(lambda: monitor.get("coroutines-in-use") <= 4, "the requests to end")
        wait_for(lambda: monitor.get("coroutines-pooled") <= 1, "the pool to empty")


@pytest.mark.skipif(bool(NO_FIO), reason=NO_FIO or "never")
def test_without_the_object_the_pool_is_qemus_own(tmp_path: Path) -> None:
    with started(tmp_path) as (qemu, monitor):
        process = QemuProcess(qemu.pid)
        with exports(qemu, tmp_path, ["iothread0"], 1_000_000) as socket:
            assert load(socket, 1).wait(PATIENCE_S) == 0
        maps = process.maps()
        assert maps is not None and maps.stacks > 128
        monitor.make()
        assert abs(monitor.get("coroutines-pooled") - maps.stacks) <= 8  # counted all along
        assert monitor.get("coroutines-peak") > 128  # 16 connections of up to 16 requests


@pytest.mark.skipif(bool(NO_FIO), reason=NO_FIO or "never")
def test_iothreads_may_go_while_their_pools_are_to_shrink(tmp_path: Path) -> None:
    """What an iothread is asked to free must neither hold it up nor outlive it."""
    with started(tmp_path) as (qemu, monitor):
        monitor.make()
        with exports(qemu, tmp_path, ["iothread0"], 1_000_000) as socket:
            assert load(socket, 1).wait(PATIENCE_S) == 0
            for number in range(200):
                monitor.execute("object-add", **{"qom-type": "iothread", "id": f"more{number}"})
                monitor.set("pool-hard-limit", 400 - number)  # a little less to keep, each time
                monitor.execute("object-del", id=f"more{number}")
        wait_for(lambda: monitor.get("coroutines-pooled") <= 201, "the pool to shrink")


def test_it_ends_as_any_qemu_does(tmp_path: Path) -> None:
    made = ("-object", "iothread,id=iothread0", "-object", f"{TYPE},id=vmtune")
    bare = ("-machine", "none", "-accel", "tcg", "-nodefaults", "-display", "none")
    with running(patched(), tmp_path, machine=(*bare, *made)) as qemu:
        with Refusing(qemu.socket) as monitor:
            for name, value in (("pool-resize-period", 1), ("pool-hard-limit", 1)):
                monitor.set(name, value)
            monitor.set("reaper-policy", "levels")
            monitor.execute("quit")
        assert qemu.process.wait(PATIENCE_S) == 0, qemu.said()
        assert qemu.said() == ""

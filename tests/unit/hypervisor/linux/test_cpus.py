"""The service keeps to the CPUs that it is told, and what benchmarks start does not."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.hosts.live import Service
from vmtune.bench.block import load as block_load
from vmtune.bench.machine.load import loaded
from vmtune.bench.migration import direct_stage as direct
from vmtune.bench.model.campaign.campaign import HostLoad
from vmtune.errors import SetupError
from vmtune.hypervisor.linux import cpus

pytestmark = pytest.mark.integration  # starts the service and the loads of benchmarks

ONE = min(cpus.ALL)
SLEEP = ["sleep", "60"]
alone = pytest.mark.skipif(len(cpus.ALL) < 2, reason="there is one CPU to run on")


def kept(work: Callable[[], None]) -> None:
    """*work* by a thread that keeps to one CPU; no other thread does."""
    failed: list[BaseException] = []

    def run() -> None:
        cpus.pin_to({ONE})
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[int]:
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait(10)


def is_on_all(pid: int) -> bool:
    """Whether a process that has just been started may use all CPUs before long."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if os.sched_getaffinity(pid) == cpus.ALL:
            return True
        time.sleep(0.01)
    return False


@alone
def test_what_benchmarks_start_may_use_all(tmp_path: Path) -> None:
    def start() -> None:
        with ended(subprocess.Popen(SLEEP)) as pid:
            assert os.sched_getaffinity(pid) == {ONE}
        with ended(block_load._start(SLEEP, tmp_path, tmp_path / "errors")) as pid:
            assert is_on_all(pid)
        with ended(direct.BenchQemu(SLEEP, tmp_path / "own").process) as pid:
            assert is_on_all(pid)

    kept(start)


@alone
@pytest.mark.parametrize("load", [HostLoad.BUSY, HostLoad.BUSY_PINNED])
def test_a_busy_host_is_so_on_all(load: HostLoad, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def start() -> None:
        begun = subprocess.Popen

        def noted(command: list[str], **how: object) -> subprocess.Popen[bytes]:
            started.append(command)
            return begun(command, **how)

        monkeypatch.setattr(subprocess, "Popen", noted)
        with loaded(load):
            pass

    kept(start)
    assert len(started) == len(cpus.ALL)
    assert all(command[0] == "taskset" for command in started)


def test_who_keeps_to_none_starts_things_as_they_are() -> None:
    assert cpus.on_all(SLEEP) == SLEEP


def test_a_cpu_that_there_is_not_is_refused_with_those_there_are() -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(SetupError, match=r"CPU 8000 is none .*name some of .*\b" + str(ONE)) as no:
        cpus.pin_to({ONE, 8000})
    assert no.value.problems[0].field == "cpus"
    assert os.sched_getaffinity(0) == before


@alone
def test_all_threads_of_the_service_keep_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VMTUNE_CPUS", str(ONE))
    service = Service(tmp_path)
    service.start()
    try:
        service.client.get("/hosts")
        assert service.process is not None
        threads = [int(each) for each in os.listdir(f"/proc/{service.process.pid}/task")]
        assert len(threads) > 1
        affinities = set()
        for each in threads:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                affinities.add(frozenset(os.sched_getaffinity(each)))
        assert affinities == {frozenset({ONE})}
    finally:
        service.stop()

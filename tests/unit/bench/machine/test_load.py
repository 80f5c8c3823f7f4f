"""The machine is busy for as long as it is wanted, and no longer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vmtune.bench.machine import load as load_module
from vmtune.bench.machine.load import LoadEnded, loaded
from vmtune.bench.model.campaign.campaign import HostLoad
from vmtune.hypervisor.linux import cpus


def children() -> list[int]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in text.split() if b"getppid" in _command(int(pid))]


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.parametrize("load", HostLoad)
def test_a_process_for_each_cpu_while_it_is_wanted(load: HostLoad) -> None:
    cpus = os.sched_getaffinity(0)
    with pytest.raises(RuntimeError), loaded(load):  # noqa: PT012 - the block is what is tested
        wanted = 0 if load is HostLoad.IDLE else len(cpus)
        deadline = time.monotonic() + 20
        while len(children()) != wanted:  # one that has just begun has no command line yet
            assert time.monotonic() < deadline
            time.sleep(0.01)
        raise RuntimeError
    assert children() == []


def wait_for_all() -> list[int]:
    """The loads, once all of them have got their command lines."""
    deadline = time.monotonic() + 20
    while len(found := children()) != len(cpus.ALL):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


@pytest.mark.parametrize("load", [HostLoad.BUSY, HostLoad.BUSY_PINNED])
def test_each_load_is_proven_by_its_cpu_time(load: HostLoad) -> None:
    with loaded(load) as loads:
        deadline = time.monotonic() + 60
        while any(each.cpu_ms < 30 for each in loads.record().processes):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        record = loads.check()
    assert record.kind == load
    pinned = sorted(cpus.ALL) if load is HostLoad.BUSY_PINNED else [None] * len(cpus.ALL)
    assert [each.cpu for each in record.processes] == pinned
    assert all(each.alive for each in record.processes)
    assert 0 < record.share <= len(cpus.ALL)


def test_where_nothing_is_to_keep_it_busy_there_is_nothing_to_prove() -> None:
    with loaded(HostLoad.IDLE) as loads:
        assert loads.check().processes == ()


@pytest.mark.parametrize("load", [HostLoad.BUSY, HostLoad.BUSY_PINNED])
def test_a_load_that_died_makes_the_run_unusable(load: HostLoad) -> None:
    with loaded(load) as loads:
        os.kill(wait_for_all()[0], signal.SIGKILL)
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        said = r"unusable: 1 of .* ended during the run: status -9"
        with pytest.raises(LoadEnded, match=said) as told:
            loads.check()
    assert told.value.problems[0].code == "load_ended"
    assert [each.alive for each in told.value.record.processes].count(False) == 1
    assert children() == []


def test_a_load_that_was_stopped_makes_the_run_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "JUDGED_FROM_MS", 0)
    monkeypatch.setattr(load_module, "LEAST_SHARE", 0.5)
    with loaded(HostLoad.BUSY) as loads:
        for pid in wait_for_all():
            os.kill(pid, signal.SIGSTOP)
        had = max(each.cpu_ms for each in loads.record().processes)
        while loads.record().wall_ms < 3 * had + 10:
            time.sleep(0.01)
        with pytest.raises(LoadEnded, match="had no more than"):
            loads.check()


def test_a_load_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "ALL", frozenset({8000}))
    said = r"1 of 1 loads .* ended during the run: .*[Aa]ffinity"
    with loaded(HostLoad.BUSY) as loads:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        with pytest.raises(LoadEnded, match=said):
            loads.check()


_DIES = """
import os, signal
from vmtune.bench.machine.load import loaded
from vmtune.bench.model.campaign.campaign import HostLoad
with loaded(HostLoad.BUSY):
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        print(file.read(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_processes_end_with_a_service_that_is_killed() -> None:
    died = subprocess.run(
        [sys.executable, "-c", _DIES], capture_output=True, text=True, check=False, timeout=60
    )
    pids = [int(pid) for pid in died.stdout.split()]
    assert pids
    for pid in pids:
        try:
            gone = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        import select  # noqa: PLC0415

        assert select.select([gone], [], [], 30)[0], "it spins on"
        os.close(gone)

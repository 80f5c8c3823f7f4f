"""The machine is busy for as long as it is wanted, and no longer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vmtune.bench.machine.load import loaded
from vmtune.bench.model.campaign.campaign import HostLoad
from vmtune.errors import SetupError
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


@pytest.mark.parametrize("load", [HostLoad.BUSY, HostLoad.BUSY_PINNED])
def test_a_load_that_died_fails_the_run(load: HostLoad) -> None:
    said = r"1 of .* ended during the run: status -9"
    with pytest.raises(SetupError, match=said) as told, loaded(load):  # noqa: PT012 - as above
        until = time.monotonic() + 20
        while not children():
            assert time.monotonic() < until
            time.sleep(0.01)
        os.kill(children()[0], signal.SIGKILL)
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert told.value.problems[0].code == "load_ended"
    assert children() == []


def test_a_load_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "ALL", frozenset({8000}))
    said = r"1 of 1 loads .* ended during the run: .*[Aa]ffinity"
    with pytest.raises(SetupError, match=said), loaded(HostLoad.BUSY):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)


def test_an_error_of_the_run_is_not_hidden_by_a_dead_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "ALL", frozenset({8000}))
    with pytest.raises(RuntimeError, match="of the run"), loaded(HostLoad.BUSY):
        raise RuntimeError("of the run")


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

"""The machine is busy for as long as it is wanted, and no longer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vmtune.bench.machine.load import loaded
from vmtune.bench.model.campaign.campaign import HostLoad


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

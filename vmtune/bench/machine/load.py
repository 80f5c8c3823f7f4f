"""Keeps the machine busy while a run runs: one spinning process for each CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from vmtune.bench.model.campaign.campaign import HostLoad
from vmtune.hypervisor.linux import cpus

_SPIN = """
import os, sys
parent, cpu = map(int, sys.argv[1:])
if cpu >= 0:
    os.sched_setaffinity(0, {cpu})
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""
"""Ends by itself within a moment of its parent's death."""
_ENDS_WITHIN_S = 5.0


@contextmanager
def loaded(load: HostLoad) -> Iterator[None]:
    """Keep the CPUs that this process may use busy for as long as the block runs."""
    if load is HostLoad.IDLE:
        yield
        return
    spinning: list[subprocess.Popen[bytes]] = []
    try:
        for cpu in sorted(cpus.ALL):
            where = cpu if load is HostLoad.BUSY_PINNED else -1
            spinning.append(
                subprocess.Popen(
                    cpus.on_all(
                        [sys.executable, "-I", "-S", "-c", _SPIN, str(os.getpid()), str(where)]
                    ),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        yield
    finally:
        for process in spinning:
            process.kill()
        for process in spinning:
            process.wait(_ENDS_WITHIN_S)

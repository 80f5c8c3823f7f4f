"""Keeps the machine busy while a run runs: one spinning process for each CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from vmtune.bench.model.campaign.campaign import HostLoad
from vmtune.errors import SetupError
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
    """Keep the CPUs that this process may use busy for as long as the block runs.

    :raise SetupError: at the end, where a load died: the block ran on an idler machine.
    """
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
                    stderr=subprocess.PIPE,
                )
            )
        yield
        _check_alive(spinning)
    finally:
        for process in spinning:
            process.kill()
        for process in spinning:
            process.wait(_ENDS_WITHIN_S)
            if process.stderr is not None:
                process.stderr.close()


def _check_alive(spinning: Sequence[subprocess.Popen[bytes]]) -> None:
    """:raise SetupError: one has ended."""
    dead = [process for process in spinning if process.poll() is not None]
    if not dead:
        return
    said = dead[0].stderr.read() if dead[0].stderr is not None else b""
    lines = said.decode(errors="replace").strip().splitlines()
    why = lines[-1] if lines else f"status {dead[0].returncode}"
    raise SetupError(
        f"{len(dead)} of {len(spinning)} loads that keep the CPUs busy ended during the run: {why}",
        field="host_load",
        code="load_ended",
        remedy="let the service set its CPU affinity (a system call filter may deny "
        "sched_setaffinity), see the kernel's log for killed processes, then run it again",
    )

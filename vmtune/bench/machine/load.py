"""Keeps the machine busy while a run runs: one spinning process for each CPU, proven to spin."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmtune.bench.model.campaign.campaign import HostLoad
from vmtune.bench.model.runs.load_record import LoadProcess, LoadRecord
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


LEAST_SHARE = 0.01
"""Of a CPU, which each load has at least had: one that was stopped has nothing. However busy the
host, the scheduler gives a process more than that."""
JUDGED_FROM_MS = 2_000
"""In less a load may not have got going."""
_ENDED_REMEDY = (
    "let the service set its CPU affinity (a system call filter may deny sched_setaffinity), see "
    "the kernel's log for killed processes, then run it again"
)
_IDLE_REMEDY = (
    "see whether something stops or limits the service's processes (CPUQuota= of its unit, a "
    "frozen control group), then run it again"
)


class LoadEnded(SetupError):
    """A load did not keep its CPU busy: what was measured meanwhile is of no use.

    :param record: what each load did; None where nothing is known.
    """

    def __init__(self, message: str, remedy: str = "", record: LoadRecord | None = None) -> None:
        super().__init__(message, field="host_load", code="load_ended", remedy=remedy)
        self.record = record


class Loads:
    """The processes that keep the machine busy."""

    def __init__(self, kind: HostLoad) -> None:
        self._kind = kind
        self._spinning: list[tuple[int | None, subprocess.Popen[bytes]]] = []
        self._began = time.monotonic()

    def start(self) -> None:
        """One for each CPU that this process may use."""
        for cpu in sorted(cpus.ALL):
            pinned = cpu if self._kind is HostLoad.BUSY_PINNED else None
            where = -1 if pinned is None else pinned
            line = [sys.executable, "-I", "-S", "-c", _SPIN, str(os.getpid()), str(where)]
            process = subprocess.Popen(
                cpus.on_all(line),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            self._spinning.append((pinned, process))

    def record(self) -> LoadRecord:
        """What each has done by now. Ask before they are ended."""
        found = tuple(
            LoadProcess(cpu, _cpu_ms(process.pid), not _has_ended(process.pid))
            for cpu, process in self._spinning
        )
        return LoadRecord(self._kind.value, (time.monotonic() - self._began) * 1000, found)

    def check(self) -> LoadRecord:
        """What each has done.

        :raise LoadEnded: one has ended, or hardly ran.
        """
        record = self.record()
        dead = [each for each in record.processes if not each.alive]
        if dead:
            message = f"ended during the run: {self._why()}"
            raise LoadEnded(_of(len(dead), record, message), _ENDED_REMEDY, record)
        least = LEAST_SHARE * record.wall_ms
        idle = [each for each in record.processes if each.cpu_ms < least]
        if idle and record.wall_ms >= JUDGED_FROM_MS:
            most = max(each.cpu_ms for each in idle)
            message = f"had no more than {most:.0f} ms of CPU time in {record.wall_ms:,.0f} ms"
            raise LoadEnded(_of(len(idle), record, message), _IDLE_REMEDY, record)
        return record

    def end(self) -> None:
        """End them all."""
        for _, process in self._spinning:
            process.kill()
        for _, process in self._spinning:
            process.wait(_ENDS_WITHIN_S)
            if process.stderr is not None:
                process.stderr.close()

    def _why(self) -> str:
        """The last words of the first that has ended."""
        for _, process in self._spinning:
            if process.poll() is None:
                continue
            said = process.stderr.read() if process.stderr is not None else b""
            lines = said.decode(errors="replace").strip().splitlines()
            return lines[-1] if lines else f"status {process.returncode}"
        return "it is gone"


@contextmanager
def loaded(load: HostLoad) -> Iterator[Loads]:
    """Keep the CPUs that this process may use busy for as long as the block runs. Whether they
    were says :meth:`Loads.check`, which the block is to ask at its end."""
    loads = Loads(load)
    try:
        if load is not HostLoad.IDLE:
            loads.start()
        yield loads
    finally:
        loads.end()


def _of(count: int, record: LoadRecord, message: str) -> str:
    whole = len(record.processes)
    return f"unusable: {count} of {whole} loads that keep the CPUs busy {message}"


def _cpu_ms(pid: int) -> float:
    """CPU time of a process, also of one that has ended and was not waited for."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _has_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in ("Z", "X")

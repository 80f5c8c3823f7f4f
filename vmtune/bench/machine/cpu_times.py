"""CPU time of a QEMU, by kinds of its threads, from /proc.

A thread's time is in /proc/PID/task/TID/schedstat to the nanosecond, and, where the kernel has
no such file, in its stat to the hundredth of a second. A thread that has ended has no file any
more, but its time stays in the process's CPU clock: what that has beyond the living threads
belongs to the dead.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vmtune.bench.model.runs.run import CpuSample, HostSide

PROC = Path("/proc")
KINDS = ("vcpu", "migration", "multifd", "other")
SENDING = frozenset({"migration", "multifd"})
"""Of them, those that call sendmsg."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

# QEMU's names of its threads, 7.2 to 10.0, cut at 15 characters by the kernel. A name may hold
# a number. Everything else, the main loop first of all, is "other".
_BEGINNINGS = {
    "CPU ": "vcpu",
    "multifdsend_": "multifd",
    "multifdrecv_": "multifd",
    "mig/src/send_": "multifd",
    "mig/dst/recv_": "multifd",
    "compress": "multifd",
    "decompress": "multifd",
    "live_migration": "migration",
    "return path": "migration",
    "postcopy/": "migration",
    "mig/": "migration",
}


def kind_of(name: str) -> str:
    """What a thread of that name does."""
    return next((kind for word, kind in _BEGINNINGS.items() if name.startswith(word)), "other")


@dataclass(slots=True)
class Tally:
    """Threads' times as they come, and what is left of those that have ended.

    Times are nanoseconds.
    """

    living: dict[int, tuple[str, int]] = field(default_factory=dict)
    dead: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def take(
        self, threads: Mapping[int, tuple[str, int]], total: int, unseen: str
    ) -> dict[str, int]:
        """The time of each kind so far.

        :param threads: kind and time of each living thread, by its number.
        :param total: of the process, read before *threads* were.
        :param unseen: the kind of threads that came and went between two looks.
        """
        ended = {tid: old for tid, old in self.living.items() if tid not in threads}
        for kind, used in ended.values():
            self.dead[kind] += used
        rest = total - sum(used for _, used in threads.values()) - sum(self.dead.values())
        if rest > 0:
            # What they used after their last sample: at the same rate as before.
            weights = {tid: used + 1 for tid, (_, used) in ended.items()}
            together = sum(weights.values())
            for tid, weight in weights.items():
                self.dead[ended[tid][0]] += rest * weight // together
            if not ended:
                self.dead[unseen] += rest
        self.living = dict(threads)
        found = dict(self.dead)
        for kind, used in threads.values():
            found[kind] += used
        return found


class QemuCpu:
    """Reads one QEMU's CPU times. :meth:`close` it: it keeps files open, so that a look is
    quick.

    :param proc: where the proc filesystem is mounted.
    """

    def __init__(self, pid: int, side: HostSide, proc: Path = PROC) -> None:
        self.pid = pid
        self.side = side
        self._tasks = proc / str(pid) / "task"
        self._threads: dict[int, _Thread] = {}
        self._tally = Tally()
        self._system: dict[int, int] = {}

    def sample(self, at_ms: float, migrating: bool) -> CpuSample | None:
        """What it has used so far; None once it has ended, or where it cannot be seen.

        :param migrating: threads that come and go between two looks are the migration's.
        """
        try:
            total = time.clock_gettime_ns(process_clock(self.pid))
            present = {int(name) for name in os.listdir(self._tasks)}
        except OSError:
            return None
        for tid in present - self._threads.keys():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                self._threads[tid] = _Thread(self._tasks / str(tid))
        times: dict[int, tuple[str, int]] = {}
        for tid, thread in tuple(self._threads.items()):
            used = thread.used() if tid in present else None
            if used is None:
                self._threads.pop(tid).close()
            else:
                kind = thread.kind(tid != self.pid)
                times[tid] = kind, used
                if kind in SENDING:
                    self._system[tid] = max(self._system.get(tid, 0), thread.system())
        if not times:
            return None
        kinds = self._tally.take(times, total, "migration" if migrating else "other")
        vcpu, migration, multifd, other = (kinds[kind] / 1e6 for kind in KINDS)
        system_ms = sum(self._system.values()) / 1e6
        return CpuSample(at_ms, self.side, vcpu, migration, multifd, other, system_ms)

    def close(self) -> None:
        """Close the files."""
        for thread in self._threads.values():
            thread.close()
        self._threads.clear()


class _Thread:
    """One thread, by its open files."""

    def __init__(self, folder: Path) -> None:
        self._comm = os.open(folder / "comm", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._precise = (folder / "schedstat").exists()
            self._stat = os.open(folder / "stat", os.O_RDONLY | os.O_CLOEXEC)
            self._times = self._stat
            if self._precise:
                self._times = os.open(folder / "schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            os.close(self._comm)
            raise
        self._kind = ""

    def used(self) -> int | None:
        """Its time in nanoseconds; None once it has ended."""
        try:
            text = os.pread(self._times, 1024, 0)
        except OSError:
            return None
        if not text:
            return None
        if self._precise:
            return int(text.split(maxsplit=1)[0])
        fields = text.rpartition(b")")[2].split()  # a name may hold anything
        return (int(fields[11]) + int(fields[12])) * 1_000_000_000 // _TICKS_PER_S

    def system(self) -> int:
        """Its system time in nanoseconds; 0 once it has ended."""
        try:
            fields = os.pread(self._stat, 1024, 0).rpartition(b")")[2].split()
        except OSError:
            return 0
        return int(fields[12]) * 1_000_000_000 // _TICKS_PER_S if fields else 0

    def kind(self, may_be_renamed: bool) -> str:
        """What it does. A thread gets its name a moment after it has begun, so that one without a
        name of its own is read again."""
        if self._kind in ("", "other") and (may_be_renamed or not self._kind):
            with contextlib.suppress(OSError):
                name = os.pread(self._comm, 64, 0).decode(errors="replace").rstrip("\n")
                self._kind = kind_of(name)
        return self._kind or "other"

    def close(self) -> None:
        for opened in {self._comm, self._stat, self._times}:
            os.close(opened)


def process_clock(pid: int) -> int:
    """The clock of a process's CPU time (clock_getcpuclockid(3) of Linux: the inverted number
    above three bits, of which 2 stands for the scheduler's own count)."""
    return (~pid << 3) | 2

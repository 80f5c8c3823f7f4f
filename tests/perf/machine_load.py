"""How busy this machine was over a time, so that measurements that others disturbed can be told."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Counters:
    """What the kernel has counted up to a moment.

    :param at_s: by the monotonic clock.
    :param busy_s: CPU time of all CPUs that was neither idle nor stolen.
    :param stolen_s: that the hypervisor below gave to others.
    :param waiting_s: in which at least one task waited for a CPU.
    """

    at_s: float
    busy_s: float
    stolen_s: float
    waiting_s: float | None


def counters() -> Counters:
    """Those of now (proc_stat(5), Documentation/accounting/psi.rst)."""
    tick = os.sysconf("SC_CLK_TCK")
    first = Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, first)
    try:
        some = Path("/proc/pressure/cpu").read_text().partition("\n")[0]
        waiting: float | None = int(some.rpartition("total=")[2]) / 1e6
    except OSError:  # a kernel without pressure stall information
        waiting = None
    busy = (user + nice + system + irq + softirq) / tick
    return Counters(time.monotonic(), busy, steal / tick, waiting)


def between(begin: Counters, end: Counters) -> dict[str, float | None]:
    """Shares, 0 to 1, of all CPUs' time that was busy and stolen, and of the time in which a task
    waited for a CPU; that one None where the kernel does not count it."""
    took = max(1e-3, end.at_s - begin.at_s)
    cpus = took * (os.cpu_count() or 1)
    waiting = None
    if begin.waiting_s is not None and end.waiting_s is not None:
        waiting = round(min(1.0, (end.waiting_s - begin.waiting_s) / took), 4)
    return {
        "busy": round((end.busy_s - begin.busy_s) / cpus, 4),
        "stolen": round((end.stolen_s - begin.stolen_s) / cpus, 4),
        "waiting": waiting,
    }

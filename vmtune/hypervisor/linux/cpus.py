"""The CPUs that the service keeps to, and those of what it starts.

Python runs one thread at a time. On several CPUs each turn that a thread hands over to another
wakes a CPU, and costs more than the turn itself where that takes a while, as in a virtual machine.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence

from vmtune.errors import SetupError

ALL = frozenset(os.sched_getaffinity(0))
"""Those that this process may use, as it was started."""


def pin_to(cpus: Collection[int], threads: Iterable[int] = (0,)) -> None:
    """Keep *threads* to *cpus*, and with them all that they start from now on.

    :param threads: by number; 0 is the one that asks.
    :raise SetupError: this process may not use one of them.
    """
    beyond = sorted(set(cpus) - ALL)
    if beyond:
        raise SetupError(
            f"CPU {beyond[0]} is none that this process may use",
            field="cpus",
            code="no_such_cpu",
            remedy=f"name some of {_listed(ALL)}",
        )
    for thread in threads:
        os.sched_setaffinity(thread, cpus)


def own_threads() -> list[int]:
    """The threads of this process: libraries have begun some when they were loaded."""
    return [int(name) for name in os.listdir("/proc/self/task")]


def on_all(command: Sequence[str]) -> list[str]:
    """*command* for a process that may use all CPUs, though this thread keeps to some."""
    if os.sched_getaffinity(0) == ALL:
        return [*command]
    return ["taskset", "--cpu-list", _listed(ALL), *command]


def _listed(cpus: Collection[int]) -> str:
    return ",".join(map(str, sorted(cpus)))

"""CPU shares as systemd gives them: to services, to VMs and to vmtune.

On a host other services are in ``system.slice`` and QEMUs are in ``machine.slice``
(systemd.special(7)), whose weights are equal unless somebody sets others; the package's unit has a
slice of its own. What a benchmark starts is in no slice, so that each QEMU competes with the
service by itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_VERSION_1 = Path("/sys/fs/cgroup/cpu")
_VERSION_2 = Path("/sys/fs/cgroup")

_SLICE = Path(__file__).parents[3] / "packaging/systemd/vmtune.slice"
_DEFAULT_WEIGHT = 100
_DEFAULT_SHARES = 1024  # of version 1, for the same

Move = Callable[[str, Iterable[int]], None]


def weights() -> dict[str, int]:
    """The slices' weights (CPUWeight of systemd.resource-control(5)) where the package is used."""
    own = re.search(r"^CPUWeight=(\d+)$", _SLICE.read_text(), re.MULTILINE)
    assert own, f"{_SLICE} sets no CPUWeight"
    return {"vmtune": int(own[1]), "system": _DEFAULT_WEIGHT, "machine": _DEFAULT_WEIGHT}


def _root() -> Path | None:
    """Where groups with CPU shares of their own can be made; None where they cannot."""
    if (_VERSION_1 / "cpu.shares").exists():
        return _VERSION_1 if os.access(_VERSION_1, os.W_OK) else None
    control = _VERSION_2 / "cgroup.subtree_control"
    if control.exists() and "cpu" in control.read_text().split():
        return _VERSION_2 if os.access(_VERSION_2, os.W_OK) else None
    return None


def why_no_slices() -> str:
    """Why CPU shares cannot be given here; empty where they can."""
    return "" if _root() is not None else "there is no writable cgroup with a CPU controller"


@contextmanager
def slices(of: Mapping[str, int]) -> Iterator[Move]:
    """Groups of these weights; what is called moves processes, by their ids, into one of them.

    They go back to the first group, and the groups are removed, at the end.
    """
    root = _root()
    assert root is not None, why_no_slices()
    groups = {name: root / f"vmtune-{os.getpid()}-{name}" for name in of}
    for name, group in groups.items():
        group.mkdir()
        if root == _VERSION_1:
            shares = of[name] * _DEFAULT_SHARES // _DEFAULT_WEIGHT
            (group / "cpu.shares").write_text(str(shares))
        else:
            (group / "cpu.weight").write_text(str(of[name]))

    def move(name: str, pids: Iterable[int]) -> None:
        for pid in pids:
            (groups[name] / "cgroup.procs").write_text(str(pid))

    try:
        yield move
    finally:
        for group in groups.values():
            for pid in (group / "cgroup.procs").read_text().split():
                try:
                    (root / "cgroup.procs").write_text(pid)
                except ProcessLookupError:
                    continue  # it has just ended
            group.rmdir()


def of_command(*words: str) -> list[int]:
    """The ids of the processes whose command line has one of these words in it."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue  # it has just ended
        if any(word in line for word in words):
            found.append(int(folder.name))
    return found

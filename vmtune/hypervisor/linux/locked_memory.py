"""Memory that the kernel counts against a user's limit of locked memory.

What MSG_ZEROCOPY sends is counted for the user (``user->locked_vm``; mm_account_pinned_pages in
net/core/skbuff.c), together with the pages that other processes of that user have pinned, by
io_uring or iommufd. What a process locks with mlock is counted for the process alone (VmLck), and
is left out. Of a process with CAP_IPC_LOCK nothing is counted.

/proc tells of a process what it has pinned (VmPin), but not what its own zero-copy sends hold
right now.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from pathlib import Path

from vmtune.hypervisor.linux.qemu_process import PROC, QemuProcess

_NAMES = ("qemu-system-", "qemu-kvm")
SEEN_FOR_S = 2.0


def qemu_processes(proc: Path = PROC) -> tuple[int, ...]:
    """The process ids of the QEMUs that can be seen, by the names of their programs."""
    found = []
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            name = (folder / "comm").read_text(errors="replace")
        except OSError:
            continue  # it has just ended
        if name.startswith(_NAMES):
            found.append(int(folder.name))
    return tuple(sorted(found))


def pinned_by_others_bytes(pid: int, proc: Path = PROC) -> int | None:
    """What the other QEMUs of the same user have pinned, together; None where that user cannot be
    seen. Other processes are looked at once in :data:`SEEN_FOR_S`: plans of many VMs ask this."""
    user = QemuProcess(pid, proc).user()
    if user is None:
        return None
    pinned = _pinned(proc, int(time.monotonic() / SEEN_FOR_S))
    return sum(held for other, (its, held) in pinned.items() if its == user and other != pid)


@functools.lru_cache(maxsize=1)
def _pinned(proc: Path, _moment: int) -> Mapping[int, tuple[int, int]]:
    """Of each QEMU that has pinned anything: its user, and how many bytes."""
    found = {}
    for pid in qemu_processes(proc):
        process = QemuProcess(pid, proc)
        user, held = process.user(), process.pinned_bytes()
        if user is not None and held and not process.may_lock_memory():
            found[pid] = user, held
    return found

"""A local QEMU process, as /proc shows it: what no monitor command reports."""

from __future__ import annotations

import itertools
import os
import random
import re
from pathlib import Path

from vmtune.hypervisor.linux.coroutine_stacks import (
    stacks_in,
    stacks_per_coroutine,
    used_bytes,
)
from vmtune.hypervisor.linux.dirty_ring import aborts_on_short_reset
from vmtune.hypervisor.linux.guest_pages import sample_again, sample_pages
from vmtune.model.host.facts import MemoryMaps
from vmtune.model.host.page_contents import PageSample

PROC = Path("/proc")
UNLIMITED_BYTES = 1 << 62
"""What an unlimited locked-memory limit reads as: the tunable's greatest value."""
_CAP_IPC_LOCK = 14  # linux/capability.h
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MAP = re.compile(rb"[0-9a-f]+-[0-9a-f]+ ")


ProgramFile = tuple[int, int, int]
"""Which file a process runs: device, inode and time of its last change."""


class QemuProcess:
    """Reads a QEMU's command line and limits. What cannot be seen (another user's process
    where /proc hides it, a process that has ended) is None.

    :param proc: where the proc filesystem is mounted.
    """

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        self.pid = pid
        self._folder = proc / str(pid)

    def program(self) -> ProgramFile | None:
        """The file that it runs: two processes of one file have the same abilities."""
        try:
            found = (self._folder / "exe").stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_mtime_ns

    def arguments(self) -> tuple[str, ...] | None:
        """Its command line."""
        text = self._read("cmdline")
        return tuple(text.rstrip("\0").split("\0")) if text else None

    def option(self, name: str) -> list[dict[str, str]] | None:
        """Each use of ``-name key=value,...`` on the command line. The word before the
        first comma, which has no key, is under the empty key."""
        arguments = self.arguments()
        if arguments is None:
            return None
        # Every option is accepted with one dash and with two.
        spelt = (f"-{name}", f"--{name}")
        pairs = itertools.pairwise(arguments)
        return [_keyed(value) for option, value in pairs if option in spelt]

    def dirty_ring_size_entries(self) -> int | None:
        """What ``-accel kvm,dirty-ring-size=`` says; 0, a bitmap, where it says nothing.

        QEMU offers it nowhere over QMP (accel/kvm/kvm-all.c: the accelerator is not in the
        object tree).
        """
        uses = self.option("accel")
        if uses is None:
            return None
        for use in uses:
            size = use.get("dirty-ring-size")
            if size is not None and use.get("accel", use.get("")) == "kvm":
                try:
                    return int(size, 0)
                except ValueError:
                    return None
        return 0

    def locked_memory_limit_bytes(self) -> int | None:
        """Its soft RLIMIT_MEMLOCK."""
        for line in (self._read("limits") or "").splitlines():
            if line.startswith("Max locked memory"):
                soft = line.removeprefix("Max locked memory").split()[0]
                return UNLIMITED_BYTES if soft == "unlimited" else int(soft)
        return None

    def may_lock_memory(self) -> bool | None:
        """Whether CAP_IPC_LOCK is effective, so that the limit does not bind it."""
        return has_capability(self._read("status"), _CAP_IPC_LOCK)

    def label(self) -> str | None:
        """By what it is confined: AppArmor's profile and mode, or SELinux's context."""
        text = (self._read("attr/current") or "").rstrip("\0\n")
        return text or None

    def user(self) -> int | None:
        """The id of the user whose limits count what it locks: its real one."""
        words = self._status("Uid")
        return int(words[0]) if words else None

    def pinned_bytes(self) -> int | None:
        """Its memory that is pinned for devices and io_uring (VmPin)."""
        words = self._status("VmPin")
        return int(words[0]) * 1024 if words else None

    def aborts_on_short_reset(self) -> bool | None:
        """Whether it aborts where the kernel empties a dirty ring in part. Searches its program,
        once for each file: some 20 ms."""
        return aborts_on_short_reset(self._folder / "exe")

    def maps_and_stack_bytes(self) -> tuple[MemoryMaps | None, int | None]:
        """Its memory maps, counted, and what one stack of a coroutine has of memory, on average;
        None where there is none, or where it cannot be seen. Takes some 0.5 ms for each thousand
        maps.

        A coroutine's stack is known by its size, 1 MiB, and the guard page below it.
        """
        try:
            text = (self._folder / "maps").read_bytes()
        except OSError:
            return None, None
        # The kernel shows an ended process without maps.
        if not _MAP.match(text):
            return None, None
        stacks = list(stacks_in(text))
        # One line each: the kernel writes a line's end within a name as \012.
        total = text.count(b"\n")
        maps = MemoryMaps(total, len(stacks), stacks_per_coroutine(self._folder / "exe"))
        return maps, used_bytes(self._folder / "pagemap", stacks)

    def maps(self) -> MemoryMaps | None:
        """Its memory maps, counted."""
        return self.maps_and_stack_bytes()[0]

    def memory_bytes(self) -> tuple[int, int] | None:
        """Its address space, and what of it is in memory (VSZ and RSS of ps)."""
        pages = (self._read("statm") or "").split()[:2]
        # The kernel shows an ended process with none.
        if len(pages) < 2 or pages[0] == "0":
            return None
        return int(pages[0]) * _PAGE, int(pages[1]) * _PAGE

    def sample_pages(
        self, memory_bytes: int, before: PageSample | None = None
    ) -> PageSample | None:
        """What pages of its guest's memory hold; None where that may not be read. Takes some 0.1 s
        of a CPU.

        :param before: look at the same pages again.
        """
        if before is not None:
            return sample_again(self._folder, before)
        return sample_pages(self._folder, memory_bytes, random.Random())  # noqa: S311 - a sample

    def _status(self, name: str) -> list[str]:
        """The words of that line of its status; empty where there is none."""
        for line in (self._read("status") or "").splitlines():
            if line.startswith(f"{name}:"):
                return line.split()[1:]
        return []

    def _read(self, name: str) -> str | None:
        try:
            return (self._folder / name).read_text(errors="replace")
        except OSError:
            return None


def has_capability(status: str | None, number: int) -> bool | None:
    """Whether a /proc/PID/status lists capability *number* as effective."""
    for line in (status or "").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return None


def _keyed(text: str) -> dict[str, str]:
    """QEMU's ``word,key=value,...``; a doubled comma stands for one in a value."""
    keyed: dict[str, str] = {}
    for part in text.replace(",,", "\0").split(","):
        key, equals, value = part.replace("\0", ",").partition("=")
        keyed.setdefault(*((key, value) if equals else ("", key)))
    return keyed

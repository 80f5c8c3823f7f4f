"""The stacks of a QEMU's coroutines, asked of the process that runs.

A stack is a map of 1 MiB with a guard page below it (QEMU util/oslib-posix.c: qemu_alloc_stack). A
QEMU that clang built with SafeStack has two of them for each coroutine (CONFIG_SAFESTACK,
util/coroutine-ucontext.c). What of a stack is in memory says /proc/PID/pagemap: smaps would say it
too, but walks all of the guest's memory for it.
"""

from __future__ import annotations

import functools
import mmap
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
STACK_BYTES = 1 << 20
"""COROUTINE_STACK_SIZE, include/qemu/coroutine_int.h."""
_WITHOUT_ACCESS = b" ---p "
_GUARD = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) ---p")
_WRITABLE = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) rw-p")
_SAFESTACK = (b"safestack CHECK failed", b"__safestack_unsafe_stack_ptr")
"""Words of SafeStack's runtime, which is part of the program (compiler-rt/lib/safestack)."""
_LOOKED_AT = 64
_NEITHER = bytes(range(1 << 6))
"""An entry's highest byte where its page is neither present nor swapped: those are its two highest
bits (Documentation/admin-guide/mm/pagemap.rst)."""
_HIGHEST = 7 if sys.byteorder == "little" else 0


def stacks_in(maps: bytes) -> Iterator[int]:
    """Where each stack begins, of the text of /proc/PID/maps.

    Searches for the maps without access alone: of the hundreds that a QEMU has they are few.
    """
    at = maps.find(_WITHOUT_ACCESS)
    while at >= 0:
        above = maps.find(b"\n", at) + 1
        below = _GUARD.match(maps, maps.rfind(b"\n", 0, at) + 1)
        stack = _WRITABLE.match(maps, above) if above else None
        if below is not None and stack is not None:
            guard, guard_end = (int(address, 16) for address in below.groups())
            begin, end = (int(address, 16) for address in stack.groups())
            if guard_end - guard == _PAGE and begin == guard_end and end - begin == STACK_BYTES:
                yield begin
        at = maps.find(_WITHOUT_ACCESS, at + 1)


def used_bytes(pagemap: Path, stacks: list[int]) -> int | None:
    """What a stack has of memory, swapped or not: the mean of at most 64, evenly chosen. None
    where there is no stack, or where it cannot be seen."""
    chosen = stacks[:: max(1, len(stacks) // _LOOKED_AT)][:_LOOKED_AT]
    entries = STACK_BYTES // _PAGE
    pages = 0
    try:
        with pagemap.open("rb", buffering=0) as file:
            for begin in chosen:
                found = os.pread(file.fileno(), entries * 8, begin // _PAGE * 8)
                pages += len(found[_HIGHEST::8].translate(None, _NEITHER))
    except OSError:
        return None
    return round(pages * _PAGE / len(chosen)) if chosen else None


def stacks_per_coroutine(program: Path) -> int:
    """Two where the program has SafeStack, else one.

    :param program: the file, or ``/proc/PID/exe``.
    """
    try:
        stat = program.stat()
    except OSError:
        return 1
    return 2 if _has_safestack(program, (stat.st_dev, stat.st_ino, stat.st_mtime_ns)) else 1


@functools.lru_cache(maxsize=64)
def _has_safestack(program: Path, file: tuple[int, int, int]) -> bool:
    """Searches some 15 to 40 MB; once for each file."""
    try:
        with (
            program.open("rb") as opened,
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as text,
        ):
            return any(text.find(word) >= 0 for word in _SAFESTACK)
    except (OSError, ValueError):
        return False

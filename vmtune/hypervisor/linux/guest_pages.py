"""What the memory of a guest on this machine holds, by a sample of its pages.

QEMU sends no pages of zeros, and may compress the others: how much is sent depends on what they
hold, which no command of QEMU tells. Who may trace a process, root above all, may read its memory.
Pages that are not there are not touched: they would be made by it, or fetched from swap.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from vmtune.model.host.page_contents import PageContents

_PAGE = os.sysconf("SC_PAGE_SIZE")
_WRITABLE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) rw", re.MULTILINE)
_LEAST_BYTES = 16 << 20
"""Smaller mappings are none of a guest's memory."""
_RUN = 256
"""So many pages, one after the other, are looked up at once: 1 MiB."""
_RUNS, _OF_EACH, _MOST = 192, 16, 1024
_PRESENT = 0x80
"""Bit 63 of an entry in pagemap: the page is in memory."""


def page_contents(folder: Path, memory_bytes: int, draw: random.Random) -> PageContents | None:
    """Look at up to 1,024 pages, 4 MiB: some 0.1 s of one CPU.

    :param folder: of the process, below ``/proc``.
    :param memory_bytes: of its guest.
    :param draw: chooses the pages.
    :return: None where this process may not look, or finds none.
    """
    zero = b"\0" * _PAGE
    packer = zlib.compressobj(1)
    zeros = others = packed = 0
    try:
        memory = _memory(folder, memory_bytes)
        with (
            (folder / "pagemap").open("rb", buffering=0) as pagemap,
            (folder / "mem").open("rb", buffering=0) as content,
        ):
            for at in itertools.islice(_there(memory, pagemap.fileno(), draw), _MOST):
                page = os.pread(content.fileno(), _PAGE, at)
                if page == zero:
                    zeros += 1
                elif len(page) == _PAGE:
                    others += 1
                    packed += len(packer.compress(page))
                    packed += len(packer.flush(zlib.Z_SYNC_FLUSH))
    except OSError:
        return None
    seen = zeros + others
    if not seen:
        return None
    return PageContents(seen, zeros / seen, min(1.0, packed / (others * _PAGE)) if others else 1.0)


def _memory(folder: Path, memory_bytes: int) -> list[tuple[int, int]]:
    """Beginning and end of what may be the guest's memory: the largest mappings, until they have
    as much as it."""
    found = [
        (int(begin, 16), int(end, 16))
        for begin, end in _WRITABLE.findall((folder / "maps").read_bytes())
    ]
    found.sort(key=lambda each: each[0] - each[1])
    chosen, missing = [], memory_bytes
    for begin, end in found:
        if missing <= 0 or end - begin < min(_LEAST_BYTES, memory_bytes):
            break
        chosen.append((begin, end))
        missing -= end - begin
    return chosen


def _there(memory: list[tuple[int, int]], pagemap: int, draw: random.Random) -> Iterator[int]:
    """Addresses of pages that are in memory, from runs in random places."""
    sizes = [end - begin for begin, end in memory]
    if not sizes:
        return
    for begin, end in draw.choices(memory, sizes, k=_RUNS):
        first = draw.randrange(begin // _PAGE, end // _PAGE)
        entries = os.pread(pagemap, min(_RUN, end // _PAGE - first) * 8, first * 8)
        there = [place for place, high in enumerate(entries[7::8]) if high & _PRESENT]
        for place in draw.sample(there, min(_OF_EACH, len(there))):
            yield (first + place) * _PAGE

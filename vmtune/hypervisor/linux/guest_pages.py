"""What the memory of a guest on this machine holds, by a sample of its pages.

QEMU sends no pages of zeros, and may compress the others: how much is sent depends on what they
hold, which no command of QEMU tells. Who may trace a process, root above all, may read its memory.
Pages that are not there are not touched: they would be made by it, or fetched from swap.
"""

from __future__ import annotations

import bisect
import itertools
import os
import random
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from vmtune.model.host.page_contents import RUN_BYTES, RUNS, PageContents, PageSample

_PAGE = os.sysconf("SC_PAGE_SIZE")
_ZEROS = b"\0" * _PAGE
_WRITABLE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) rw", re.MULTILINE)
_LEAST_BYTES = 16 << 20
"""Smaller mappings are none of a guest's memory."""
_RUN = RUN_BYTES // _PAGE
"""So many pages, one after the other, are looked up at once."""
_MOST = 1024
_PRESENT = np.uint64(63)
"""The bit of an entry in pagemap that says that the page is mapped. It may be the kernel's page of
zeros: who only reads what was never written gets that (QEMU does, when it samples), and no other
bit tells it for huge ones, too."""


def sample_pages(folder: Path, memory_bytes: int, draw: random.Random) -> PageSample | None:
    """Look at up to 1,024 pages, 4 MiB: some 0.1 s of one CPU.

    :param folder: of the process, below ``/proc``.
    :param memory_bytes: of its guest.
    :param draw: chooses the pages.
    :return: None where this process may not look, or finds none.
    """
    try:
        memory = _memory(folder, memory_bytes)
        with (folder / "pagemap").open("rb", buffering=0) as pagemap:
            there, share = _there(memory, pagemap.fileno(), draw)
    except OSError:
        return None
    seen = _look(folder, there)
    return None if seen is None else replace(seen, there_share=share)


def sample_again(folder: Path, before: PageSample) -> PageSample | None:
    """Look at the same pages again."""
    return _look(folder, before.digests, before.digests)


def _look(
    folder: Path, addresses: Iterable[int], before: Mapping[int, int] | None = None
) -> PageSample | None:
    every, changed = _Counted(), _Counted()
    digests = {}
    try:
        with (folder / "mem").open("rb", buffering=0) as content:
            for at in addresses:
                page = os.pread(content.fileno(), _PAGE, at)
                if len(page) < _PAGE:
                    continue
                digests[at] = zlib.crc32(page)
                every.add(page)
                if before is not None and digests[at] != before[at]:
                    changed.add(page)
    except OSError:
        return None
    seen = every.contents()
    return None if seen is None else PageSample(seen, changed.contents(), digests=digests)


class _Counted:
    """Counts pages of zeros, and packs the others as one stream."""

    def __init__(self) -> None:
        self._zeros = self._others = self._packed = 0
        self._packer = zlib.compressobj(1)

    def add(self, page: bytes) -> None:
        if page == _ZEROS:
            self._zeros += 1
            return
        self._others += 1
        self._packed += len(self._packer.compress(page))
        self._packed += len(self._packer.flush(zlib.Z_SYNC_FLUSH))

    def contents(self) -> PageContents | None:
        """None where there was no page."""
        pages = self._zeros + self._others
        if not pages:
            return None
        packed = min(1.0, self._packed / (self._others * _PAGE)) if self._others else 1.0
        return PageContents(pages, self._zeros / pages, packed)


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


def _there(
    memory: list[tuple[int, int]], pagemap: int, draw: random.Random
) -> tuple[list[int], float]:
    """Addresses of up to 1,024 pages that are mapped, from runs in random places; and of how many
    that were looked up they are."""
    runs = [range(begin, end, _RUN * _PAGE) for begin, end in memory]
    beyond = list(itertools.accumulate(map(len, runs)))
    total = beyond[-1] if beyond else 0
    found: list[int] = []
    looked_up = 0
    for number in draw.sample(range(total), min(RUNS, total)):
        mapping = bisect.bisect_right(beyond, number)
        at = runs[mapping][number - beyond[mapping]]
        pages = min(_RUN, (memory[mapping][1] - at) // _PAGE)
        entries = os.pread(pagemap, pages * 8, at // _PAGE * 8)
        there = np.nonzero(np.frombuffer(entries, np.uint64) >> _PRESENT)[0]
        found += (at + there * _PAGE).tolist()
        looked_up += pages
    chosen = sorted(draw.sample(found, min(_MOST, len(found))))
    return chosen, len(found) / max(1, looked_up)

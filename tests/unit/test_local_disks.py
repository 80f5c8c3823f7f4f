"""What the lab's guest writes to a disk is told from what it has written before."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.support.hosts.local_disks import MIB, sector, wrong_in

SECTOR = 512
SECTORS = MIB // SECTOR
BEFORE = random.Random(1).randbytes(MIB)


def written(turns: int) -> bytearray:
    """The MiB after so many turns."""
    head = bytearray(BEFORE)
    for turn in range(max(0, turns - SECTORS), turns):
        at = turn % SECTORS * SECTOR
        head[at : at + SECTOR] = sector(turn)
    return head


@pytest.mark.parametrize("turns", [0, 1, 700, SECTORS, SECTORS + 1, 3 * SECTORS + 77])
def test_what_was_written_last_is_right(turns: int) -> None:
    assert wrong_in(bytes(written(turns)), BEFORE) == ""


@pytest.mark.parametrize("lost", [3 * SECTORS + 40, 2 * SECTORS + 500, 3 * SECTORS])
def test_a_write_that_was_lost_is_wrong(lost: int) -> None:
    head = written(3 * SECTORS + 77)
    at = lost % SECTORS * SECTOR
    head[at : at + SECTOR] = sector(lost - SECTORS)
    assert wrong_in(bytes(head), BEFORE)


def test_the_sectors_are_those_of_the_guest() -> None:
    code = (Path(__file__).parents[2] / "vmtune/lab/guest/disk.c").read_text()
    assert re.search(r"#define SECTORS 2048\b", code)
    assert "(turn * SECTOR_WORDS + place) * 0x9e3779b1 >> 16" in code

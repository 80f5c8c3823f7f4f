"""What a guest's memory holds: of a real process with such memory."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vmtune.hypervisor.linux.guest_pages import sample_again, sample_pages
from vmtune.hypervisor.linux.qemu_process import QemuProcess

MIB = 1 << 20
MEMORY_MIB = 128
_MAKES = """
import mmap, os, sys
shared = mmap.MAP_SHARED if sys.argv[1] == "shared" else mmap.MAP_PRIVATE
memory = mmap.mmap(-1, 128 << 20, flags=shared | mmap.MAP_ANONYMOUS)
at = 32 << 20  # what is before it, and after it, is never touched
for kind in sys.argv[2:]:
    name, mib = kind.split("=")
    size = int(mib) << 20
    text = b"one line of a log, much as the others\\n" * 107
    one = {"zeros": b"\\0" * 4096, "text": text}.get(name)
    for page in range(size // 4096):
        memory[at + page * 4096:at + (page + 1) * 4096] = (
            os.urandom(4096) if one is None else one.ljust(4096, b"x")
        )
    at += size
if sys.argv[1] == "read":  # as QEMU does, when it samples pages
    for page in range(at, 128 << 20, 4096):
        assert memory[page] == 0
print("made", flush=True)
sys.stdin.readline()
for page in range(32 << 8, 48 << 8):  # the first 16 MiB of it
    memory[page * 4096:page * 4096 + 1] = b"!"
print("changed", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(*kinds: str, shared: bool = False, read: bool = False) -> Iterator[Path]:
    with changing(*kinds, shared=shared, read=read) as (process, _):
        yield process


@contextmanager
def changing(
    *kinds: str, shared: bool = False, read: bool = False
) -> Iterator[tuple[Path, Callable[[], None]]]:
    how = "shared" if shared else "read" if read else "private"
    with subprocess.Popen(
        [sys.executable, "-c", _MAKES, how, *kinds],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as made:  # fmt: skip
        assert made.stdin is not None and made.stdout is not None
        assert made.stdout.readline() == "made\n"

        def change() -> None:
            assert made.stdin is not None and made.stdout is not None
            made.stdin.write("now\n")
            made.stdin.flush()
            assert made.stdout.readline() == "changed\n"

        yield Path(f"/proc/{made.pid}"), change
        made.stdin.close()


def resident_kib(process: Path) -> int:
    (line,) = (x for x in (process / "status").read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1])


@pytest.mark.parametrize("shared", [False, True])
def test_zeros_are_counted_and_the_rest_is_packed(shared: bool) -> None:
    with holding("zeros=16", "random=16", shared=shared) as process:
        before = resident_kib(process)
        seen = sample_pages(process, MEMORY_MIB * MIB, random.Random(1))
        assert resident_kib(process) - before < 1024  # what was not there was not made
    assert seen is not None
    assert 100 < seen.contents.pages <= 1024
    assert seen.contents.zero_share == pytest.approx(0.5, abs=0.15)
    assert seen.contents.packed_share == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("read", [False, True])
def test_what_holds_something_is_known_by_both_shares(read: bool) -> None:
    """What was read and never written is mapped, to the kernel's page of zeros."""
    with holding("text=16", "zeros=8", read=read) as process:
        seen = sample_pages(process, MEMORY_MIB * MIB, random.Random(7))
    assert seen is not None and seen.there_share is not None
    assert (seen.there_share > 0.7) is read
    held = MEMORY_MIB * seen.there_share * (1 - seen.contents.zero_share)
    assert held == pytest.approx(16, rel=0.2)


def test_text_is_packed_well() -> None:
    with holding("text=32") as process:
        seen = sample_pages(process, MEMORY_MIB * MIB, random.Random(2))
    assert seen is not None
    assert seen.contents.zero_share == 0
    assert 0 < seen.contents.packed_share < 0.1


def test_what_changed_is_told_apart() -> None:
    with changing("random=16", "text=16") as (process, change):
        first = sample_pages(process, MEMORY_MIB * MIB, random.Random(6))
        assert first is not None
        still = sample_again(process, first)
        assert still is not None
        assert (still.contents, still.changed) == (first.contents, None)
        change()
        seen = sample_again(process, first)
    assert seen is not None and seen.changed is not None
    assert seen.contents.pages == first.contents.pages
    assert 0.3 < seen.changed.pages / seen.contents.pages < 0.7
    assert seen.changed.packed_share == pytest.approx(1.0, abs=0.02)
    assert seen.contents.packed_share < 0.7
    assert sample_again(process, first) is None  # it has ended


def test_nothing_but_zeros_has_nothing_to_pack() -> None:
    with holding("zeros=32") as process:
        seen = sample_pages(process, MEMORY_MIB * MIB, random.Random(3))
    assert seen is not None
    assert (seen.contents.zero_share, seen.contents.packed_share) == (1.0, 1.0)


def test_what_is_not_there_is_not_said() -> None:
    with holding() as process:
        assert sample_pages(process, MEMORY_MIB * MIB, random.Random(4)) is None
    assert sample_pages(process, MEMORY_MIB * MIB, random.Random(4)) is None  # it has ended


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_who_may_not_look_sees_nothing() -> None:
    asks = (
        "import os, random, sys; from pathlib import Path\n"
        "from vmtune.hypervisor.linux.guest_pages import sample_pages\n"
        "os.setuid(65534)\n"
        f"print(sample_pages(Path(sys.argv[1]), {MEMORY_MIB * MIB}, random.Random(5)))"
    )
    with holding("text=8") as process:
        said = subprocess.run(
            [sys.executable, "-c", asks, str(process)], capture_output=True, text=True, check=True
        )
    assert said.stdout == "None\n"


def test_a_process_is_asked_by_its_number() -> None:
    with holding("text=32") as process:
        seen = QemuProcess(int(process.name)).sample_pages(MEMORY_MIB * MIB)
    assert seen is not None
    assert seen.contents.packed_share < 0.1

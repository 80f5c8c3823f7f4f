"""What a guest's memory holds: of a real process with such memory."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vmtune.hypervisor.linux.guest_pages import page_contents
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
print("made", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(*kinds: str, shared: bool = False) -> Iterator[Path]:
    how = "shared" if shared else "private"
    with subprocess.Popen(
        [sys.executable, "-c", _MAKES, how, *kinds],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as made:  # fmt: skip
        assert made.stdin is not None and made.stdout is not None
        assert made.stdout.readline() == "made\n"
        yield Path(f"/proc/{made.pid}")
        made.stdin.close()


def resident_kib(process: Path) -> int:
    (line,) = (x for x in (process / "status").read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1])


@pytest.mark.parametrize("shared", [False, True])
def test_zeros_are_counted_and_the_rest_is_packed(shared: bool) -> None:
    with holding("zeros=16", "random=16", shared=shared) as process:
        before = resident_kib(process)
        seen = page_contents(process, MEMORY_MIB * MIB, random.Random(1))
        assert resident_kib(process) - before < 1024  # what was not there was not made
    assert seen is not None
    assert 100 < seen.pages <= 1024
    assert seen.zero_share == pytest.approx(0.5, abs=0.15)
    assert seen.packed_share == pytest.approx(1.0, abs=0.02)


def test_text_is_packed_well() -> None:
    with holding("text=32") as process:
        seen = page_contents(process, MEMORY_MIB * MIB, random.Random(2))
    assert seen is not None
    assert seen.zero_share == 0
    assert 0 < seen.packed_share < 0.1


def test_nothing_but_zeros_has_nothing_to_pack() -> None:
    with holding("zeros=32") as process:
        seen = page_contents(process, MEMORY_MIB * MIB, random.Random(3))
    assert seen is not None
    assert (seen.zero_share, seen.packed_share) == (1.0, 1.0)


def test_what_is_not_there_is_not_said() -> None:
    with holding() as process:
        assert page_contents(process, MEMORY_MIB * MIB, random.Random(4)) is None
    assert page_contents(process, MEMORY_MIB * MIB, random.Random(4)) is None  # it has ended


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_who_may_not_look_sees_nothing() -> None:
    asks = (
        "import os, random, sys; from pathlib import Path\n"
        "from vmtune.hypervisor.linux.guest_pages import page_contents\n"
        "os.setuid(65534)\n"
        f"print(page_contents(Path(sys.argv[1]), {MEMORY_MIB * MIB}, random.Random(5)))"
    )
    with holding("text=8") as process:
        said = subprocess.run(
            [sys.executable, "-c", asks, str(process)], capture_output=True, text=True, check=True
        )
    assert said.stdout == "None\n"


def test_a_process_is_asked_by_its_number() -> None:
    with holding("text=32") as process:
        seen = QemuProcess(int(process.name)).page_contents(MEMORY_MIB * MIB)
    assert seen is not None
    assert seen.packed_share < 0.1

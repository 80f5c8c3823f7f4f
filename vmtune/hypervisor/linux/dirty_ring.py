"""Whether a dirty ring is safe here: asked of the kernel, and of QEMU's program.

Since Linux 6.16 KVM_RESET_DIRTY_RINGS stops at a pending signal and returns how far it came; QEMU
takes a short count for a fault and aborts (``kvm_dirty_ring_reap_locked: Assertion `ret == total'
failed``, accel/kvm/kvm-all.c). It happens in a vCPU's thread, which empties its own full ring while
other threads signal it. So a guest can die as soon as a ring fills.
"""

from __future__ import annotations

import functools
import json
import mmap
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = Path(__file__).with_name("ring_reset_program.py")
_ASKS_WITHIN_S = 10.0
_ASSERTION = b"\0ret == total\0"
"""The assertion's text, as glibc's assert keeps it in the program."""
_GOES_ON = b"\0short-ring-resets\0"
"""A counter of the patched QEMU, which calls the kernel again until all is reset."""


@dataclass(frozen=True, slots=True)
class RingReset:
    """What the kernel does when a signal is pending.

    :param ends_early: KVM_RESET_DIRTY_RINGS hands back only a part; None where it could not be
        asked, and *why_unknown* says why.
    """

    ends_early: bool | None
    why_unknown: str = ""


@functools.lru_cache(maxsize=4)
def ask_ring_reset(kvm: Path = Path("/dev/kvm")) -> RingReset:
    """Try it with a VM of one vCPU that lives for some 30 ms; the answer holds until the next
    boot, so it is asked once. Blocks for about 0.2 s."""
    try:
        said = subprocess.run(
            [sys.executable, "-I", str(_PROGRAM), str(kvm)],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASKS_WITHIN_S,
        ).stdout
        answer = json.loads(said)
        asked, early, why = answer["asked"], answer["ended_early"], answer["why_not"]
    except subprocess.TimeoutExpired:
        return RingReset(None, f"the kernel did not answer within {_ASKS_WITHIN_S:g} s")
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        return RingReset(None, f"it could not be tried: {error}")
    return RingReset(bool(early)) if asked else RingReset(None, str(why))


def aborts_on_short_reset(program: Path) -> bool | None:
    """Whether a QEMU program has the assertion, and nothing that makes it hold; None where the
    file cannot be read.

    :param program: the file, or ``/proc/PID/exe``.
    """
    try:
        stat = program.stat()
    except OSError:
        return None
    return _has_assertion(program, (stat.st_dev, stat.st_ino, stat.st_mtime_ns))


@functools.lru_cache(maxsize=64)
def _has_assertion(program: Path, file: tuple[int, int, int]) -> bool | None:
    """Searches some 15 to 40 MB; once for each file."""
    try:
        with (
            program.open("rb") as opened,
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as text,
        ):
            return text.find(_ASSERTION) >= 0 > text.find(_GOES_ON)
    except (OSError, ValueError):
        return None

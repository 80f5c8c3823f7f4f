"""What other QEMUs of a user have pinned: on a made-up /proc, and of real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vmtune.hypervisor.linux import locked_memory
from vmtune.hypervisor.linux.locked_memory import pinned_by_others_bytes, qemu_processes

_LOCK = 1 << 14
_PINS = """
import ctypes, mmap, struct, sys
size = int(sys.argv[1])
with open("/proc/self/comm", "w") as comm:
    comm.write("qemu-system-x86")
libc = ctypes.CDLL(None, use_errno=True)
ring = libc.syscall(425, 4, ctypes.create_string_buffer(120))  # io_uring_setup
memory = mmap.mmap(-1, size)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
vector = ctypes.create_string_buffer(struct.pack("QQ", at, size), 16)
done = libc.syscall(427, ring, 0, vector, 1)  # io_uring_register: IORING_REGISTER_BUFFERS
print("pinned" if ring >= 0 and done == 0 else "cannot", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def anew() -> None:
    locked_memory._pinned.cache_clear()


def process(
    proc: Path, pid: int, user: int, pinned_kib: int, caps: int = 0, name: str = "qemu-system-x86"
) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "comm").write_text(f"{name}\n")
    (proc / str(pid) / "status").write_text(
        f"Name:\t{name}\nUid:\t{user}\t0\t0\t0\nVmLck:\t999 kB\nVmPin:\t{pinned_kib:8} kB\n"
        f"CapEff:\t{caps:016x}\n"
    )


def test_those_of_one_user_are_added_up(tmp_path: Path) -> None:
    process(tmp_path, 10, 64055, 1000)
    process(tmp_path, 11, 64055, 4)
    process(tmp_path, 12, 64055, 8)
    process(tmp_path, 13, 1000, 16)  # of another user
    process(tmp_path, 14, 64055, 32, caps=_LOCK)  # is not counted
    process(tmp_path, 15, 64055, 64, name="bash")  # no QEMU
    (tmp_path / "self").mkdir()
    assert qemu_processes(tmp_path) == (10, 11, 12, 13, 14)
    assert pinned_by_others_bytes(10, tmp_path) == 12 * 1024
    assert pinned_by_others_bytes(13, tmp_path) == 0
    assert pinned_by_others_bytes(99, tmp_path) is None


@contextmanager
def pinning(size: int) -> Iterator[int]:
    """A process called as a QEMU, of this user, without the right to lock without limit."""
    line = (sys.executable, "-c", _PINS, str(size))
    drop = ("setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock")
    with subprocess.Popen(
        (*drop, *line) if os.geteuid() == 0 else line,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdin is not None and child.stdout is not None
        try:
            if child.stdout.readline() != "pinned\n":
                pytest.skip("io_uring cannot pin memory here")
            yield child.pid
        finally:
            child.stdin.close()


def test_what_a_real_process_has_pinned() -> None:
    size = 2 << 20
    with pinning(size) as one, pinning(2 * size) as other:
        others_of_one = pinned_by_others_bytes(one)
        others_of_other = pinned_by_others_bytes(other)
        assert others_of_one is not None and others_of_other is not None
        assert others_of_one - others_of_other == size
        assert others_of_other >= size

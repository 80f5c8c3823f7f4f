"""Stacks of coroutines: of a real process with such maps, and of a program with SafeStack."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.qemus.qemu import installed
from vmtune.hypervisor.linux.coroutine_stacks import stacks_per_coroutine
from vmtune.hypervisor.linux.qemu_process import QemuProcess

_MAKES = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
page, size = 4096, 1 << 20
count, touched = map(int, sys.argv[1:])
for _ in range(count):
    at = libc.mmap(None, size + page, 3, 0x22, -1, 0)  # private, anonymous
    assert libc.mprotect(ctypes.c_void_p(at), page, 0) == 0
    for number in range(touched):
        ctypes.memset(at + page + size - (number + 1) * page, 1, 1)
print("made", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def process(request: pytest.FixtureRequest) -> Iterator[QemuProcess]:
    with subprocess.Popen(
        [sys.executable, "-c", _MAKES, *map(str, request.param)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as made:  # fmt: skip
        assert made.stdin is not None and made.stdout is not None
        assert made.stdout.readline() == "made\n"
        yield QemuProcess(made.pid)
        made.stdin.close()


@pytest.mark.parametrize("process", [(3, 5), (200, 2)], indirect=True)
def test_what_stacks_have_of_memory_is_asked_of_the_process(
    process: QemuProcess, request: pytest.FixtureRequest
) -> None:
    count, touched = request.node.callspec.params["process"]
    maps = process.maps()
    assert maps is not None
    assert (maps.stacks, maps.stacks_per_coroutine) == (count, 1)
    assert process.maps_and_stack_bytes()[1] == touched * 4096


@pytest.mark.parametrize("process", [(0, 0)], indirect=True)
def test_without_stacks_there_is_nothing_to_say(process: QemuProcess) -> None:
    assert process.maps_and_stack_bytes()[1] is None


def test_a_program_with_safestack_has_two_stacks_for_each(tmp_path: Path) -> None:
    program = tmp_path / "qemu"
    for text, stacks in (
        (b"safestack CHECK failed: %s:%d %s", 2),
        (b"\0__safestack_unsafe_stack_ptr\0", 2),
        (b"failed to allocate memory for stack", 1),
    ):
        program.unlink(missing_ok=True)
        program.write_bytes(b"\x7fELF" + text)
        assert stacks_per_coroutine(program) == stacks
        program = program.with_name(program.name + "x")
    assert stacks_per_coroutine(tmp_path / "none") == 1


def test_the_installed_qemu_has_one_stack_for_each() -> None:
    build = installed()
    if build.why_not:
        pytest.skip(build.why_not)
    assert stacks_per_coroutine(Path(build.program)) == 1

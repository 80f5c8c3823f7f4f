"""A QEMU's standard error: complaints are kept, trace lines counted."""

import itertools
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.migration.qemu_stderr import RingFullCounter, Stderr

FULL = "kvm_dirty_ring_full vcpu 0\n"
LINES = st.lists(st.sampled_from([FULL, "kvm_dirty_ring_full vcpu 12\n", "qemu: no\n", "\n"]))


@given(LINES, st.lists(st.integers(0, 200)))
def test_lines_are_counted_however_they_are_cut(lines: list[str], cuts: list[int]) -> None:
    data = "".join(lines).encode()
    edges = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    counter = RingFullCounter()
    for begin, end in itertools.pairwise(edges):
        counter.add(data[begin:end])
    assert counter.count == sum("full" in line for line in lines)
    said = [line for line in counter.other().splitlines() if line]
    assert said == [line.strip() for line in lines if line == "qemu: no\n"]


def test_only_the_last_of_much_is_kept() -> None:
    counter = RingFullCounter()
    counter.add(b"x" * 100_000 + b"\nlast words")
    assert len(counter.other()) < 10_000
    assert counter.other().endswith("last words")


def test_warnings_explain_no_end() -> None:
    counter = RingFullCounter()
    counter.add(b"qemu: warning: host lacks a feature\nqemu: cannot go on\n")
    assert counter.other() == "qemu: cannot go on"


@pytest.fixture
def errors() -> Stderr:
    return Stderr()


def test_a_flood_is_counted_to_the_last_line(errors: Stderr) -> None:
    program = (
        "import sys\n"
        "sys.stderr.write('before\\n')\n"
        f"for _ in range(200): sys.stderr.write({FULL!r} * 1000)\n"
        "sys.stderr.write('after\\n')\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stderr=errors.write_end) as process:
        errors.started()
        process.wait()
        assert errors.ring_full_exits() == 200_000
        errors.close()
    assert errors.ring_full_exits() == 200_000
    assert errors.said().splitlines()[-1] == "after"


def test_nothing_stays_open(errors: Stderr) -> None:
    open_now = set(os.listdir("/proc/self/fd"))
    errors.discard()
    assert len(open_now - set(os.listdir("/proc/self/fd"))) == 2

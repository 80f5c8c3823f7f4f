"""Asking the kernel and QEMU's program whether dirty rings are safe here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vmtune.hypervisor.linux.dirty_ring import RingReset, aborts_on_short_reset, ask_ring_reset


def test_this_kernel_answers_the_same_each_time() -> None:
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        pytest.skip("/dev/kvm cannot be used here")
    if os.uname().machine != "x86_64":
        pytest.skip("the kernel can be asked on x86-64 only")
    answers = []
    for _ in range(5):
        ask_ring_reset.cache_clear()
        answers.append(ask_ring_reset())
    assert len(set(answers)) == 1
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    if answers[0].ends_early is None:
        pytest.skip(answers[0].why_unknown)  # a KVM without rings of 65,536 entries
    # "KVM: Bail from the dirty ring reset flow if a signal is pending" came with Linux 6.16.
    assert answers[0].ends_early is (release >= (6, 16))


def test_it_is_asked_once() -> None:
    ask_ring_reset.cache_clear()
    first = ask_ring_reset()
    assert ask_ring_reset() is first


def test_without_kvm_nobody_knows(tmp_path: Path) -> None:
    assert ask_ring_reset(tmp_path / "kvm") == RingReset(None, "No such file or directory")
    (tmp_path / "file").write_text("")
    assert ask_ring_reset(tmp_path / "file").ends_early is None


def test_a_program_is_searched_for_the_assertion(tmp_path: Path) -> None:
    program = tmp_path / "qemu"
    program.write_bytes(b"\x7fELF" * 5000 + b"\0ret == total\0" + b"x" * 5000)
    assert aborts_on_short_reset(program) is True
    program.write_bytes(b"\0ret == total\0" + b"x" * 5000 + b"\0short-ring-resets\0")
    os.utime(program, ns=(3, 3))
    assert aborts_on_short_reset(program) is False  # the patched one repeats the call
    program.write_bytes(b"\x7fELF" * 5000 + b"nothing of that kind")
    os.utime(program, ns=(1, 1))
    assert aborts_on_short_reset(program) is False
    program.write_bytes(b"")
    os.utime(program, ns=(2, 2))
    assert aborts_on_short_reset(program) is None
    assert aborts_on_short_reset(tmp_path / "none") is None

"""What the packaged unit's system call filter allows, by a filter of the same calls here."""

from __future__ import annotations

import ctypes.util
import functools
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "packaging/systemd/vmtune.service"
_LIBRARY = ctypes.util.find_library("seccomp")
pytestmark = pytest.mark.skipif(
    _LIBRARY is None or shutil.which("systemd-analyze") is None,
    reason="libseccomp or systemd-analyze is not installed",
)

_UNDER = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
lib.seccomp_init.restype = ctypes.c_void_p
lib.seccomp_init.argtypes = [ctypes.c_uint32]
lib.seccomp_rule_add_array.argtypes = [
    ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
lib.seccomp_load.argtypes = [ctypes.c_void_p]
filter = lib.seccomp_init(0x7FFF0000)  # all others are allowed
for name in sys.argv[2].split(","):
    number = lib.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:
        assert lib.seccomp_rule_add_array(filter, 0x00050001, number, 0, None) == 0  # EPERM
assert lib.seccomp_load(filter) == 0
exec(sys.argv[3])
"""

_PINS = """
import os
from vmtune.hypervisor.linux import cpus
cpus.pin_to({min(cpus.ALL)}, cpus.own_threads())
assert os.sched_getaffinity(0) == {min(cpus.ALL)}
"""
_LOADS = """
import time
from vmtune.bench.machine.load import loaded
from vmtune.bench.model.campaign.campaign import HostLoad
for load in (HostLoad.BUSY, HostLoad.BUSY_PINNED):
    with loaded(load) as loads:
        time.sleep(0.5)
        loads.check()
"""
_LIMITS_ITSELF = """
import os, resource
before = os.nice(0)
assert os.nice(10) == min(19, before + 10)
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
"""
_RISES = """
import os
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except PermissionError:
    pass
else:
    raise AssertionError("it became a real-time process")
"""


@functools.cache
def group(name: str) -> frozenset[str]:
    """The system calls of one of systemd's groups."""
    told = subprocess.run(
        ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
    )
    words = (line.strip() for line in told.stdout.splitlines()[1:])
    return expanded(word for word in words if word and not word.startswith("#"))


def expanded(words: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    for word in words:
        found |= group(word) if word.startswith("@") else {word}
    return frozenset(found)


def denied() -> frozenset[str]:
    """What the unit takes out of its first list, and does not add again."""
    refused: frozenset[str] = frozenset()
    for line in UNIT.read_text().splitlines():
        name, _, value = line.partition("=")
        if name == "SystemCallFilter" and value.startswith("~"):
            refused |= expanded(value[1:].split())
        elif name == "SystemCallFilter":
            refused -= expanded(value.split())
    return refused


@pytest.mark.parametrize(
    "work",
    [_PINS, _LOADS, _LIMITS_ITSELF, _RISES],
    ids=["pins its threads", "loads CPUs", "limits itself", "stays ordinary"],
)
def test_the_service_can_do_it(work: str) -> None:
    assert _LIBRARY is not None
    calls = ",".join(sorted(denied()))
    done = subprocess.run(
        [sys.executable, "-c", _UNDER, _LIBRARY, calls, work],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr

"""Giving processes the CPU shares that systemd would."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.hosts.live import wait_for
from tests.support.hosts.slices import of_command, slices, weights, why_no_slices

pytestmark = pytest.mark.integration


def test_processes_are_moved_and_go_back() -> None:
    if why_no_slices():
        pytest.skip(why_no_slices())
    with subprocess.Popen(["sleep", "61.25"]) as sleeping:
        try:
            groups = Path(f"/proc/{sleeping.pid}/cgroup")
            before = groups.read_text()
            with slices({"system": 100, "machine": 300}) as move:
                # A process that has just begun shows no words for a moment.
                wait_for(lambda: bool(of_command("sleep\x0061.25")), "the process to be seen")
                move("machine", of_command("sleep\x0061.25"))
                assert "-machine" in groups.read_text()
                assert _share("machine") == 3 * _share("system")
            assert groups.read_text() == before
        finally:
            sleeping.kill()


def _share(name: str) -> int:
    group = f"vmtune-{os.getpid()}-{name}"
    (found,) = [*Path("/sys/fs/cgroup").glob(f"cpu/{group}/cpu.shares"),
                *Path("/sys/fs/cgroup").glob(f"{group}/cpu.weight")]  # fmt: skip
    return int(found.read_text())


def test_the_service_goes_before_guests_by_the_package_s_weight() -> None:
    assert weights()["vmtune"] > weights()["machine"] == weights()["system"]

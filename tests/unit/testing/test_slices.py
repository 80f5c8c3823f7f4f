"""Giving processes the CPU shares that systemd would."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.slices import of_command, slices, why_no_slices

pytestmark = pytest.mark.integration


def test_processes_are_moved_and_go_back() -> None:
    if why_no_slices():
        pytest.skip(why_no_slices())
    with subprocess.Popen(["sleep", "61.25"]) as sleeping:
        try:
            groups = Path(f"/proc/{sleeping.pid}/cgroup")
            before = groups.read_text()
            with slices("system", "machine") as move:
                move("machine", of_command("sleep\x0061.25"))
                assert "-machine" in groups.read_text()
            assert groups.read_text() == before
        finally:
            sleeping.kill()

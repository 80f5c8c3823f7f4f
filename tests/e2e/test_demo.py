"""The demo, as a user runs it: it ends by itself, shows its tables, and leaves nothing."""

import json
import subprocess
import sys

import pytest

from tests.support.live import wait_for, why_no_lab
from vmtune.admin.demo.compared import BLOCKS
from vmtune.admin.demo.demo import LAB
from vmtune.admin.demo.lock import LOCK, alone
from vmtune.admin.demo.reaper import ARMS
from vmtune.errors import SetupError
from vmtune.lab import down, status
from vmtune.lab.domain_xml import kvm_usable

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")


def demo(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vmtune", "demo", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def left_behind() -> list[str]:
    """What a demo that is over may not leave."""
    found = [str(path) for path in (LAB.folder, LOCK) if path.exists()]
    if status(LAB).state != "down":
        found.append("the lab")
    return found


def test_it_measures_and_cleans_up() -> None:
    done = demo("--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    runs = printed["runs"]
    assert [run["scenario"].removeprefix("demo/") for run in runs] == (
        [each.removeprefix("dirty-ring/") for each in ARMS.values()] if kvm_usable() else []
    )
    comparison = printed["comparison"]
    assert [arm["name"] for arm in comparison["arms"]] == ["stock", "tuned"]
    assert len(comparison["runs"]) == 2 * BLOCKS
    stock, by_intent = printed["migrations"]
    assert stock["state"] in ("completed", "cancelled")
    assert by_intent["intent"] is not None
    assert left_behind() == []


def test_two_at_a_time_are_refused_and_the_first_keeps_its_lock() -> None:
    with alone():
        with pytest.raises(SetupError, match="another demo runs"), alone(within_s=0.1):
            pass
        assert LOCK.exists()
    assert not LOCK.exists()


def test_killed_it_leaves_nothing_that_the_next_one_does_not_clear_away() -> None:
    service = LAB.folder / "service/vmtune.sock"
    process = subprocess.Popen(
        [sys.executable, "-m", "vmtune", "demo"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(service.exists, "the demo's service to listen", within_s=150)
    finally:
        process.kill()
        process.wait()
    with alone():  # the next demo waits for the service of this one,
        down(LAB)  # and begins with what it left
    assert not service.exists()
    assert left_behind() == []

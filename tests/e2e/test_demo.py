"""The demo, as a user runs it: it ends by itself, shows its tables, and leaves nothing."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.live import wait_for, why_no_lab
from vmtune.admin.demo.demo import LAB, PROFILES, ROUNDS
from vmtune.admin.demo.reaper import ARMS
from vmtune.lab import down, status
from vmtune.lab.domain_xml import kvm_usable

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")


def demo(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vmtune", "demo", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=230, check=False)


def left_behind() -> list[str]:
    """What a demo that is over may not leave."""
    found = [str(path) for path in (LAB.folder, Path("/run/vmtune-demo.lock")) if path.exists()]
    if status(LAB).state != "down":
        found.append("the lab")
    return found


def assert_runs(runs: list[dict[str, Any]]) -> None:
    """One run of each way to empty dirty rings; none without KVM, which has them."""
    if not kvm_usable():
        assert runs == []
        return
    assert [run["scenario"].removeprefix("demo/") for run in runs] == [
        scenario.removeprefix("dirty-ring/") for scenario in ARMS.values()
    ]
    for run, scenario in zip(runs, ARMS.values(), strict=True):
        assert "guest_write_share_percent" in run["metrics"], run["failure"]
        assert ("ring_full_exits" in run["metrics"]) == ("bitmap" not in scenario)
        reaped = not scenario.endswith(("bitmap", "stock"))
        assert (run["metrics"].get("reaper_rounds", 0) > 0) == reaped


def test_it_migrates_under_both_profiles_and_cleans_up() -> None:
    done = demo("--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert_runs(printed["runs"])
    records = printed["migrations"]
    assert len(records) == ROUNDS * len(PROFILES)
    tuned = [r for r in records if r["profile"] == "tuned" and r["state"] == "completed"]
    assert tuned
    # One may be over before it is looked at, and then nothing is known of it.
    seen = [(o["tunable"], o["status"]) for record in tuned for o in record["outcomes"]]
    assert {status for _, status in seen} <= {"effective", "unknown"}
    assert {name for name, status in seen if status == "effective"} == set(PROFILES["tuned"])
    assert left_behind() == []


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
    wait_for(lambda: not service.exists(), "the service to end with the demo")
    down(LAB)  # what the next demo begins with
    Path("/run/vmtune-demo.lock").unlink()
    assert left_behind() == []

"""The demo, as a user runs it: it ends by itself, shows its tables, and leaves nothing."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.hosts.live import wait_for, why_no_lab
from tests.support.served.browser import chromium, settled, tab, why_no_browser
from vmtune.admin.demo import overview
from vmtune.admin.demo.demo import LAB
from vmtune.admin.demo.lock import LOCK, alone
from vmtune.admin.demo.reaper import ARMS
from vmtune.errors import SetupError
from vmtune.lab import down, status
from vmtune.lab.domain_xml import kvm_usable

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")
FEW_BLOCKS = 2
"""Of the campaign, in what ``make test`` runs: too few for a verdict."""
SHORTENED = f"""
from vmtune.admin.demo import compared
from vmtune.client.cli import main
compared.PLAN["blocks"] = {FEW_BLOCKS}
main()
"""
BOUND_S = 180
"""How long a demo may measure, where nothing else keeps the machine busy."""


def demo(*options: str) -> subprocess.CompletedProcess[str]:
    """As it is but for the campaign's blocks: the test that keeps it up runs all of them."""
    command = [sys.executable, "-c", SHORTENED, "demo", *options]
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
    assert len(comparison["runs"]) == 2 * FEW_BLOCKS
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


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.skipif(bool(why_no_browser()), reason=why_no_browser() or "never")
def test_kept_it_has_something_to_see_and_ends_at_ctrl_c(tmp_path: Path) -> None:
    quiet = os.getloadavg()[0] < 1 and "PYTEST_XDIST_WORKER" not in os.environ
    printed, said = tmp_path / "printed", tmp_path / "said"
    with printed.open("wb") as out, said.open("wb") as errors:
        process = subprocess.Popen(
            # what runs in the background of a shell may have been told to ignore Ctrl-C
            ["env", "--default-signal=INT", sys.executable, "-m", "vmtune", "demo", "--keep"],
            stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
        )  # fmt: skip

    def is_kept() -> bool:
        assert process.poll() is None, said.read_text()
        return "until you press Ctrl-C" in printed.read_text()

    try:
        wait_for(is_kept, "the demo to have measured", within_s=900)
        shown = printed.read_text()
        way_in = re.search(r"^- (http://\S+) +sign in with the token (\S+)$", shown, re.M)
        assert way_in, shown
        with chromium() as browser, tab(browser, way_in[1], way_in[2]) as made:
            made.page.goto("/")
            settled(made.page)
            told = made.page.get_by_label("Needs attention")
            expect(told.get_by_text(overview.DRIFTED).first).to_be_visible()
            running = made.page.get_by_text(overview.MIGRATING).locator("visible=true")
            expect(running.first).to_be_visible()
            assert "No comparisons yet" not in made.page.inner_text("main")
        listed = re.search(r"^- (\S.* vm list --tuning drifted)$", shown, re.M)
        assert listed, shown
        vms = subprocess.run(
            listed[1].split(), capture_output=True, text=True, timeout=120, check=True
        )
        assert overview.DRIFTED in vms.stdout
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(120)
    assert process.returncode == 0, said.read_text()
    assert left_behind() == []
    namespaces = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert LAB.name_a not in namespaces
    took = re.search(r"This took (\d+) s", said.read_text())
    assert took
    assert not quiet or int(took[1]) <= BOUND_S

"""fio's process: when it is ended, what is read of its end, and that it does not outlive us."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vmtune.bench.block.load import _WITH_ITS_PARENT, Load, Watch, _Tasks, load
from vmtune.bench.block.run import fio_failure
from vmtune.bench.model.scenario.block import LoadPhase

DATA = Path(__file__).parents[3] / "data" / "fio"


async def run(folder: Path, program: str, lasts_s: float, alive: bool = True) -> Load:
    """A program of ours in fio's place."""
    watch = Watch(os.getpid())
    command = [sys.executable, "-c", program, str(folder / "fio.json")]
    return await load(
        command, folder, folder / "fio.json", lasts_s, watch, lambda: alive, lambda: None
    )


COPIES = f"import shutil, sys; shutil.copy({str(DATA / '3.33-null-both.json')!r}, sys.argv[1])"


async def test_a_report_is_kept_whole(tmp_path: Path) -> None:
    done = await run(tmp_path, COPIES, 1)
    assert fio_failure(done) == ""
    assert done.document is not None
    assert done.document["fio version"] == "fio-3.33"
    assert done.measured_ms is not None
    assert done.begun_ms <= done.measured_ms[0] <= done.measured_ms[1] <= done.ended_ms


async def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    done = await run(tmp_path, "import time; time.sleep(100)", -30)
    assert done.overdue
    assert fio_failure(done) == "fio did not end in time"


async def test_each_failure_has_its_words(tmp_path: Path) -> None:
    done = await run(tmp_path, "import sys; sys.exit('fio: no such engine')", 1)
    assert fio_failure(done) == "fio ended with status 1: fio: no such engine"
    done = await run(tmp_path, "import os; os.kill(os.getpid(), 9)", 1)
    assert fio_failure(done) == "fio ended with signal 9: it gives no reason"
    done = await run(tmp_path, "pass", 1)
    assert fio_failure(done) == "fio wrote no report: it gives no reason"
    nothing = (
        f"import shutil, sys; shutil.copy({str(DATA / '3.33-no-connection.json')!r}, sys.argv[1])"
    )
    assert fio_failure(await run(tmp_path, nothing, 1)).startswith("fio failed: ")


def test_threads_that_come_and_go_at_its_start_are_no_jobs_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As fio 3.33 was seen to have them: three, two, one, and then its job, which ends."""
    counts = {0: 1, 10: 3, 20: 2, 30: 1, 40: 3, 2000: 3, 2025: 2, 2050: 1}
    tasks = _Tasks(1, 2000)
    for at_ms, count in counts.items():
        found = ["x"] * count
        monkeypatch.setattr(os, "listdir", lambda folder, found=found: found)
        tasks.look(at_ms)
    assert tasks.fewer_ms == 2025


def test_without_its_parent_nothing_is_run() -> None:
    ours = [*_WITH_ITS_PARENT, str(os.getpid()), "true"]
    assert subprocess.run(ours, check=False).returncode == 0
    others = [*_WITH_ITS_PARENT, "1", "true"]
    assert subprocess.run(others, check=False).returncode == 1


def _ended() -> int:
    """The number of a process that was."""
    with subprocess.Popen(["true"]) as process:
        return process.pid


async def test_a_process_that_has_ended_is_not_seen() -> None:
    watch = Watch(_ended())
    await watch.look(LoadPhase.AFTER)
    watch.mark()
    assert watch.processes == []
    assert watch.cpu == []

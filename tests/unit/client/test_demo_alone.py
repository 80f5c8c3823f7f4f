"""One demo at a time, and nothing left of one that was interrupted."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from vmtune.admin.demo import lock as demo_lock
from vmtune.admin.demo.lock import alone
from vmtune.errors import SetupError


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    at = tmp_path / "demo.lock"
    monkeypatch.setattr(demo_lock, "LOCK", at)
    return at


def test_a_second_one_is_refused_and_leaves_the_firsts_lock(lock: Path) -> None:
    with alone():
        with pytest.raises(SetupError, match="another demo runs"), alone(within_s=0.1):
            pass
        assert lock.exists()
    assert not lock.exists()


def test_ctrl_c_leaves_no_lock(lock: Path) -> None:
    with pytest.raises(KeyboardInterrupt), alone():
        raise KeyboardInterrupt
    assert not lock.exists()
    with alone():
        pass


KILLED = """
import os, subprocess, sys
from pathlib import Path
from vmtune.admin.demo import lock
lock.LOCK = Path(sys.argv[1])
with lock.alone() as held:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    left = subprocess.Popen(["sleep", "60"], pass_fds=[held], **quiet)
    print(left.pid, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_what_a_killed_one_started_keeps_the_lock_until_it_ends(lock: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, str(lock)], capture_output=True, text=True, check=False
    )
    left = int(ran.stdout)
    with pytest.raises(SetupError, match="another demo runs"), alone(within_s=0.1):
        pass
    threading.Timer(0.3, os.kill, (left, signal.SIGKILL)).start()
    with alone(within_s=60):
        assert lock.exists()


def test_one_that_waited_for_a_lock_that_is_gone_takes_the_new_one(lock: Path) -> None:
    with alone():
        lock.unlink()
        with alone(within_s=0.1):
            assert lock.exists()

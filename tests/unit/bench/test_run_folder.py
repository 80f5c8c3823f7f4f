"""A run's folder goes with the run, also when that is killed."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vmtune.bench.run_folder import clear_left_behind, processes_of, run_folder
from vmtune.errors import SetupError


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A short one, whatever runs the tests: a run's folder has to leave room for sockets."""
    with tempfile.TemporaryDirectory(prefix="vt-") as folder:
        yield Path(folder)


def wait_until(condition: Callable[[], object]) -> None:
    """A process that has just begun may still be without its command line."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


KILLED = """
import os, subprocess, sys
from pathlib import Path
from vmtune.bench.run_folder import run_folder

with run_folder(Path(sys.argv[1])) as folder:
    (folder / "a").mkdir()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", f"{folder}/a/q.sock"],
                     stdout=subprocess.DEVNULL)
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_it_is_gone_afterwards_and_so_is_what_is_around_it(tmp_path: Path) -> None:
    base = tmp_path / "bench"
    with run_folder(base) as one, run_folder(base) as other:
        assert one != other
        (one / "sub").mkdir()
        (one / "sub" / "file").write_text("x")
    assert not base.exists()


def test_a_failure_in_the_block_is_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), run_folder(tmp_path / "bench"):
        _ = 1 / 0
    assert not (tmp_path / "bench").exists()


def test_what_a_killed_run_left_is_cleared_away_and_what_lives_is_not(tmp_path: Path) -> None:
    base = tmp_path / "bench"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(base)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    left = Path(process.stdout.readline().strip())
    try:
        assert left.is_dir()
        clear_left_behind(base)
        assert left.is_dir()
        wait_until(lambda: processes_of(left))
    finally:
        process.kill()
        process.communicate()
    with run_folder(base) as living:
        clear_left_behind(base)
        assert living.is_dir()
        assert not left.exists()
        assert processes_of(left) == []
    assert not base.exists()


def test_a_folder_without_a_lock_is_cleared_away_too(tmp_path: Path) -> None:
    (tmp_path / "run-12345678").mkdir()
    (tmp_path / "mine").mkdir()
    assert clear_left_behind(tmp_path) == ["run-12345678"]
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_many_come_and_go_at_once(tmp_path: Path) -> None:
    base, problems = tmp_path / "bench", list[BaseException]()

    def work() -> None:
        try:
            for _ in range(50):
                with run_folder(base) as folder:
                    clear_left_behind(base)
                    assert folder.is_dir()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert not base.exists()


@pytest.mark.parametrize("name", ["x" * 90, "file/bench"])
def test_a_folder_that_cannot_be_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError) as caught, run_folder(tmp_path / name):
        pass
    assert caught.value.problems[0].field == "testbed.folder"
    assert caught.value.problems[0].remedy


def test_the_lock_is_not_handed_to_children(tmp_path: Path) -> None:
    with run_folder(tmp_path / "bench") as folder:
        lock = next(
            int(fd.name)
            for fd in Path("/proc/self/fd").iterdir()
            if os.readlink(fd) == str(folder / "lock")
        )
        assert not os.get_inheritable(lock)

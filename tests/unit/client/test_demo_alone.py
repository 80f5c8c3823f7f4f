"""One demo at a time, and nothing left of one that was interrupted."""

from pathlib import Path

import pytest

from vmtune.admin.demo import demo
from vmtune.errors import SetupError


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    at = tmp_path / "demo.lock"
    monkeypatch.setattr(demo, "_LOCK", at)
    return at


def test_a_second_one_is_refused_and_leaves_the_firsts_lock(lock: Path) -> None:
    with demo._alone():
        with pytest.raises(SetupError, match="another demo runs"), demo._alone():
            pass
        assert lock.exists()
    assert not lock.exists()


def test_ctrl_c_leaves_no_lock(lock: Path) -> None:
    with pytest.raises(KeyboardInterrupt), demo._alone():
        raise KeyboardInterrupt
    assert not lock.exists()
    with demo._alone():
        pass

"""The marker of what the lab made, and to whom a folder belongs."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from vmtune.errors import LabError
from vmtune.lab.marker import MARKER_NAME, Marker, locked, read_marker, remove_folder


def test_what_is_written_is_read(tmp_path: Path) -> None:
    marker = Marker("boot", "settings", True, True, complete=True)
    marker = marker.with_namespace("a", 0).with_namespace("b", 5).with_namespace("a", 7)
    marker.write(tmp_path)
    assert read_marker(tmp_path) == marker
    assert [(mark.name, mark.inode) for mark in marker.namespaces] == [("b", 5), ("a", 7)]
    assert os.listdir(tmp_path) == [MARKER_NAME]


def test_a_namespace_is_forgotten(tmp_path: Path) -> None:
    marker = Marker("boot", "settings", True).with_namespace("a", 1)
    assert marker.without_namespace("a").namespaces == ()


def test_no_folder_and_an_empty_one_are_no_lab(tmp_path: Path) -> None:
    assert read_marker(tmp_path) is None
    assert read_marker(tmp_path / "missing") is None


def test_a_folder_without_marker_is_somebody_elses(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("precious")
    with pytest.raises(LabError, match="not a lab's folder"):
        read_marker(tmp_path)
    with pytest.raises(LabError, match="not a lab's folder"):
        read_marker(tmp_path / "data")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 99}', "not json"])
def test_a_damaged_marker_is_said_to_be(tmp_path: Path, text: str) -> None:
    (tmp_path / MARKER_NAME).write_text(text)
    with pytest.raises(LabError) as refused:
        read_marker(tmp_path)
    assert refused.value.problems[0].code == "marker_unreadable"


def _lab(folder: Path, made_folder: bool) -> Marker:
    marker = Marker("boot", "settings", made_folder)
    marker.write(folder)
    (folder / "service").mkdir()
    (folder / "service/log").write_text("")
    (folder / "zone").symlink_to("service")
    return marker


@pytest.mark.parametrize("made_folder", [True, False])
def test_a_folder_goes_only_if_the_lab_made_it(tmp_path: Path, made_folder: bool) -> None:
    folder = tmp_path / "lab"
    folder.mkdir()
    remove_folder(folder, _lab(folder, made_folder))
    assert folder.exists() is not made_folder
    assert made_folder or os.listdir(folder) == []


@pytest.mark.parametrize("call", ["rmtree", "rmdir"])
def test_a_folder_that_others_write_to_stays_recognisable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    folder = tmp_path / "lab"
    folder.mkdir()
    marker = _lab(folder, made_folder=True)

    def written_to_meanwhile(path: Path) -> None:
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))

    with monkeypatch.context() as patched:
        patched.setattr(shutil if call == "rmtree" else Path, call, written_to_meanwhile)
        with pytest.raises(LabError, match="Directory not empty") as refused:
            remove_folder(folder, marker)
    assert "lab down" in str(refused.value.problems[0].remedy)
    assert read_marker(folder) == marker
    remove_folder(folder, marker)
    assert not folder.exists()


def _hold(folder: Path, held: Event, release: Event) -> None:
    with locked(folder):
        held.set()
        release.wait(60)


def test_the_lock_keeps_others_out_and_ends_with_its_process(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(tmp_path, held, release))
    holder.start()
    try:
        assert held.wait(60)
        with pytest.raises(LabError, match="another process"), locked(tmp_path, timeout_s=0):
            pass
    finally:
        holder.kill()
        holder.join(60)
    with locked(tmp_path, timeout_s=0):
        pass

"""What is at the path of a disk, by files of this machine."""

from __future__ import annotations

import struct
from pathlib import Path
from stat import S_IFDIR

import pytest

from vmtune.hypervisor.linux.disk_file import look_at_disk, may_enter
from vmtune.model.host.disks import Disk

NOBODY = (65534, 65534)


def test_an_image_is_told_by_its_header(tmp_path: Path) -> None:
    header = struct.pack(">4sIQIIQ", b"QFI\xfb", 3, 0, 0, 16, 5 << 30)
    (tmp_path / "a").write_bytes(header + bytes(100))
    (tmp_path / "b").write_bytes(bytes(512))
    (tmp_path / "empty").touch()
    seen = {name: look_at_disk(tmp_path, f"/{name}") for name in ("a", "b", "empty")}
    assert [(at.format, at.capacity_bytes) for at in seen.values()] == [
        ("qcow2", 5 << 30),
        ("raw", 512),
        ("raw", 0),
    ]
    assert {at.file_system for at in seen.values()} == {seen["a"].file_system} != {""}
    assert all(at.present and at.writable for at in seen.values())


def test_two_names_of_one_file_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    (tmp_path / "c").touch()
    disk = Disk("vda", identity=look_at_disk(tmp_path, "/a").identity)
    assert look_at_disk(tmp_path, "/b").is_same(disk) is True
    assert look_at_disk(tmp_path, "/c").is_same(disk) is False


def test_what_is_missing_is_told_from_a_missing_folder(tmp_path: Path) -> None:
    at = look_at_disk(tmp_path, "/gone")
    assert (at.present, at.folder) == (False, True)
    assert at.free_bytes
    at = look_at_disk(tmp_path, "/gone/gone")
    assert (at.present, at.folder) == (False, False)


def test_each_folder_on_the_way_has_to_let_the_user_through(tmp_path: Path) -> None:
    inner = tmp_path / "open/closed/inner"
    inner.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "open", inner):
        folder.chmod(0o755)
    (tmp_path / "open/closed").chmod(0o700)
    owner = inner.stat()
    assert look_at_disk(tmp_path, "/open/x", NOBODY).reachable is True
    assert look_at_disk(tmp_path, "/open/closed/inner/x", NOBODY).reachable is False
    user = (owner.st_uid, owner.st_gid)
    assert look_at_disk(tmp_path, "/open/closed/inner/x", user).reachable is True
    assert look_at_disk(tmp_path, "/open/x").reachable is None


@pytest.mark.parametrize(
    ("mode", "user", "enters"),
    [
        (0o711, (7, 7), True),
        (0o710, (7, 2), True),
        (0o710, (7, 7), True),  # it may belong to the group
        (0o700, (7, 7), False),
        (0o701, (7, 2), False),
        (0o077, (1, 2), False),
        (0o700, (0, 0), True),
    ],
)
def test_who_gets_into_a_folder(mode: int, user: tuple[int, int], enters: bool) -> None:
    assert may_enter(S_IFDIR | mode, 1, 2, user) is enters

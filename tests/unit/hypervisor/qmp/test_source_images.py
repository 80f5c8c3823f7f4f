"""Which of the source's files are removed without libvirt: real files, and QEMUs that say so."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from vmtune.errors import CommandRefused
from vmtune.hypervisor.guard import OPEN
from vmtune.hypervisor.linux import disk_file
from vmtune.hypervisor.linux.disk_file import identity_of
from vmtune.hypervisor.qmp.qemu import Qemu
from vmtune.hypervisor.qmp.source_images import remove
from vmtune.model.migration.disks import CopiedDisk


class Process:
    pid = os.getpid()


class Said:
    """A QEMU.

    :param state: as query-status has it.
    :param files: of its disks.
    """

    def __init__(self, state: str = "postmigrate", *files: Path, seen: bool = True) -> None:
        self._state, self._files, self._seen = state, files, seen
        self.monitor = self

    def process(self) -> Process | None:
        return Process() if self._seen else None

    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        if command == "query-status":
            return {"status": self._state}
        return [
            {"device": f"d{number}", "inserted": {
                "node-name": f"n{number}", "drv": "raw", "ro": False,
                "image": {"filename": str(file), "virtual-size": 1},
            }}
            for number, file in enumerate(self._files)
        ]  # fmt: skip


@pytest.fixture
def image(tmp_path: Path) -> Path:
    made = tmp_path / "disk.raw"
    made.write_bytes(b"of the guest")
    return made


@pytest.fixture(autouse=True)
def processes(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """/proc with this process and the first, which is none: who runs the tests need not be root."""
    folder = tmp_path_factory.mktemp("proc")
    (folder / "1").mkdir()
    for name in ("sys", str(os.getpid())):
        (folder / name).symlink_to(f"/proc/{name}")
    monkeypatch.setattr(disk_file, "PROC", folder)
    return folder


def copied(image: Path, **fields: Any) -> CopiedDisk:
    return CopiedDisk("disk0", str(image), identity=identity_of(image.stat()), **fields)


async def tried(disk: CopiedDisk, source: Said | None = None, *others: Said) -> str:
    qemus = [cast(Qemu, other) for other in others]
    return (await remove(cast(Qemu | None, source), qemus, [disk], OPEN))[disk.target]


def test_an_image_that_nothing_else_names_is_removed(image: Path) -> None:
    other = image.with_name("other.raw")
    other.write_bytes(b"of another")
    assert asyncio.run(tried(copied(image), Said(), Said("running", other))) == ""
    assert not image.exists() and other.exists()


def test_removing_it_again_is_harmless_and_its_qemu_may_have_ended(image: Path) -> None:
    disk = copied(image)
    assert asyncio.run(tried(disk)) == ""
    assert asyncio.run(tried(disk, Said())) == ""
    assert not image.exists()


@pytest.mark.parametrize("state", ["running", "paused", "finish-migrate", "inmigrate"])
def test_nothing_is_removed_where_the_vm_has_not_left(image: Path, state: str) -> None:
    with pytest.raises(CommandRefused, match="the source's QEMU says"):
        asyncio.run(tried(copied(image), Said(state)))
    assert image.exists()


def overlay(image: Path, beneath: str) -> None:
    """A qcow2 image that lies on another."""
    name = beneath.encode()
    header = struct.pack(">4sIQIIQ", b"QFI\xfb", 3, 104, len(name), 16, 1 << 20)
    image.with_name("top.qcow2").write_bytes(header.ljust(104, b"\0") + name)


def link_it(image: Path) -> None:
    image.with_name("link").symlink_to(image)
    overlay(image, "link")


def replaced(image: Path) -> None:
    image.rename(image.with_name("aside"))
    image.write_bytes(b"another")


def by_link(image: Path) -> None:
    image.rename(image.with_name("aside"))
    image.symlink_to("aside")


CASES: list[tuple[Callable[[Path], object], str]] = [
    (lambda image: overlay(image, "disk.raw"), "top.qcow2 lies on it"),
    (lambda image: overlay(image, str(image)), "top.qcow2 lies on it"),
    (lambda image: overlay(image, 'json:{"driver": "raw", "file": "disk.raw"}'), "lies on it"),
    (link_it, "top.qcow2 lies on it"),
    (lambda image: os.link(image, image.with_name("name2")), "hard links"),
    (replaced, "another file"),
    (by_link, "not a plain file"),
]


@pytest.mark.parametrize(("happens", "why"), CASES)
def test_an_image_that_something_names_stays(
    image: Path, happens: Callable[[Path], object], why: str
) -> None:
    disk = copied(image)
    happens(image)
    assert why in asyncio.run(tried(disk, Said()))
    assert image.exists()


def test_so_does_one_that_another_qemu_has_or_may_have(image: Path) -> None:
    disk = copied(image)
    for other in (Said("running", image), Said("running", image, seen=False)):
        assert "another QEMU" in asyncio.run(tried(disk, Said(), other))
    assert "nothing says which" in asyncio.run(tried(CopiedDisk("disk0", str(image)), Said()))
    assert image.exists()


def test_so_does_one_that_another_process_has_open(image: Path, processes: Path) -> None:
    async def held() -> str:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", 'exec 3<"$0"; echo; read _', str(image),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        await process.stdout.readline()
        (processes / str(process.pid)).symlink_to(f"/proc/{process.pid}")
        try:
            return await tried(copied(image), Said())
        finally:
            process.stdin.close()
            await process.wait()

    assert "has it open" in asyncio.run(held())
    assert image.exists()


def test_so_does_one_that_a_process_may_have_open(image: Path, processes: Path) -> None:
    """Other users' are not shown to a service that is not root."""
    (processes / "7").mkdir()
    (processes / "7/fd").touch()  # cannot be listed
    assert "not every process" in asyncio.run(tried(copied(image), Said()))
    (processes / "7/fd").unlink()  # it has ended
    (processes / "1").rmdir()
    assert "not every process" in asyncio.run(tried(copied(image), Said()))
    assert image.exists()
    (processes / "1").mkdir()
    (processes / "1/fd").touch()  # a container's may have more rights than root has in it
    assert asyncio.run(tried(copied(image), Said())) == ""

"""The initramfs of the boot benchmark: one program and a console, as a cpio archive in the form
"newc" of the kernel's Documentation/driver-api/early-userspace/buffer-format.rst."""

from __future__ import annotations

import functools
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from vmtune.lab.programs import require_programs, run

SOURCE = Path(__file__).parent / "guest" / "init.c"
_FLAGS = (
    "-m64", "-march=x86-64", "-std=gnu11", "-O2", "-ffreestanding", "-fno-pic", "-fno-pie",
    "-no-pie", "-fno-stack-protector", "-fcf-protection=none", "-fno-asynchronous-unwind-tables",
    "-nostdlib", "-static", "-Wl,--build-id=none", "-s", "-Wall", "-Wextra", "-Werror",
)  # fmt: skip
_TRAILER = "TRAILER!!!"
_ALIGN = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the archive.

    :param mode: its type and its permissions.
    :param device: major and minor number, of a device.
    """

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def archive(entries: tuple[Entry, ...]) -> bytes:
    """The archive of *entries*, all of them root's and without a time: the same bytes for the
    same entries."""
    listed = (*entries, Entry(_TRAILER, 0))
    return b"".join(_packed(entry, number) for number, entry in enumerate(listed, start=1))


def _packed(entry: Entry, number: int) -> bytes:
    name = entry.name.encode() + b"\0"
    owner, group, links, changed, check = 0, 0, 1, 0, 0
    numbers = (
        number, entry.mode, owner, group, links, changed, len(entry.data),
        0, 0, *entry.device, len(name), check,
    )  # fmt: skip
    head = b"070701" + b"".join(b"%08X" % each for each in numbers) + name
    return _padded(head) + _padded(entry.data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % _ALIGN)


@functools.cache
def initramfs() -> bytes:
    """The initramfs, built once for all boots of this process.

    :raise LabError: gcc is missing, or the build failed.
    """
    require_programs("gcc", "ld")
    with tempfile.TemporaryDirectory(prefix="vmtune-init-") as folder:
        program = Path(folder) / "init"
        run(["gcc", *_FLAGS, "-o", str(program), str(SOURCE)],
            doing="build the initramfs", timeout_s=120)  # fmt: skip
        return archive(
            (
                Entry("dev", stat.S_IFDIR | 0o755),
                # What the kernel opens as the first program's standard output.
                Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)),
                Entry("init", stat.S_IFREG | 0o755, program.read_bytes()),
            )
        )

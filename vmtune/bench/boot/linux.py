"""The Linux kernel that the boot benchmark starts: from Debian's package, fetched once, never
installed.

In the cache's folder ``linux`` lies ``vmlinuz-`` with the first digits of its own SHA-256, which is
verified before each use. A file ``vmlinuz`` there, put by the operator, is used instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from vmtune.bench.qemu_process import DIES_WITH_PARENT
from vmtune.errors import SetupError
from vmtune.hypervisor.linux.cpus import on_all

PACKAGE = "linux-image-cloud-amd64"
"""Names the newest kernel's package of the host's Debian as the one that it depends on: a kernel
for VMs, of which fetching takes the least."""
OWN = "vmlinuz"
_DIGITS = 16
_DEPENDS = re.compile(r"Depends: (linux-image-[a-z0-9.+-]+)")
_LOOK_WITHIN_S = 60.0
_FETCH_WITHIN_S = 900.0
_TEMPORARY = "fetching-"
_LOCK = "lock"
# Of the Linux/x86 boot protocol (Documentation/arch/x86/boot.rst).
_MAGIC, _MAGIC_AT = b"HdrS", 0x202
_VERSION_AT, _VERSION_FROM = 0x20E, 0x200
_LONGEST_VERSION = 256


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel to start.

    :param version: its release and build, as its file says.
    """

    path: Path
    version: str


def kernel_version(image: bytes) -> str:
    """What the header of a bzImage says of its version; empty where there is none.

    :param image: its beginning will do.
    """
    if image[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC:
        return ""
    offset = int.from_bytes(image[_VERSION_AT : _VERSION_AT + 2], "little")
    if not offset:
        return ""
    start = _VERSION_FROM + offset
    text = image[start : start + _LONGEST_VERSION].split(b"\0")[0]
    return "".join(c for c in text.decode("ascii", "replace") if c.isprintable()).strip()


async def linux_kernel(cache: Path) -> Kernel:
    """The kernel of the cache; fetched where there is none, which takes some seconds.

    :raise SetupError: it cannot be had.
    """
    folder = cache / "linux"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        async with _locked(folder):
            found = await asyncio.to_thread(_kept, folder)
            return found or await _fetch(folder)
    except OSError as error:
        raise SetupError(
            f"the kernel of the boot benchmark cannot be stored in {folder}: {error.strerror}",
            field="cache",
            code="cache_not_writable",
            remedy="name a folder that vmtune may write to",
        ) from error


@asynccontextmanager
async def _locked(folder: Path) -> AsyncIterator[None]:
    """One process at a time; the lock ends with its process."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            await asyncio.sleep(0.1)
        yield
    finally:
        os.close(lock)


def _kept(folder: Path) -> Kernel | None:
    """What lies there and is whole. What a killed fetch left is cleared away."""
    for left in folder.glob(f"{_TEMPORARY}*"):
        shutil.rmtree(left, ignore_errors=True)
    own = folder / OWN
    if own.exists():
        image = own.read_bytes()
        if not kernel_version(image):
            raise SetupError(
                f"{own} is not a Linux kernel for x86",
                field="cache",
                code="no_kernel",
                remedy="put a bzImage there, or remove it",
            )
        return Kernel(own, kernel_version(image))
    for path in sorted(folder.glob(f"{OWN}-*")):
        image = path.read_bytes()
        if path.name == _name(image):
            return Kernel(path, kernel_version(image))
        path.unlink()
    return None


def _name(image: bytes) -> str:
    return f"{OWN}-{hashlib.sha256(image).hexdigest()[:_DIGITS]}"


async def _fetch(folder: Path) -> Kernel:
    for program, package in (("apt-get", "apt"), ("apt-cache", "apt"), ("dpkg-deb", "dpkg")):
        if shutil.which(program) is None:
            raise _not_had(folder, f"{program} (of the package {package}) is not installed")
    with tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=folder) as name:
        at = Path(name)
        said = await _run(folder, at, _LOOK_WITHIN_S, "apt-cache", "depends", PACKAGE)
        depends = _DEPENDS.search(said)
        if depends is None:
            raise _not_had(folder, f"apt knows no package {PACKAGE}")
        await _run(folder, at, _FETCH_WITHIN_S, "apt-get", "-q", "download", depends[1])
        archive = await asyncio.to_thread(_only_package, at, folder)
        files = at / "files.tar"
        with files.open("wb") as out:
            await _run(
                folder, at, _LOOK_WITHIN_S, "dpkg-deb", "--fsys-tarfile", str(archive),
                stdout=out.fileno(),
            )  # fmt: skip
        return await asyncio.to_thread(_unpack, files, folder)


def _only_package(at: Path, folder: Path) -> Path:
    packages = list(at.glob("*.deb"))
    if len(packages) != 1:
        raise _not_had(folder, f"apt-get has fetched {len(packages)} packages")
    return packages[0]


def _unpack(files: Path, folder: Path) -> Kernel:
    with tarfile.open(files) as archive:
        for member in archive:
            if member.isfile() and Path(member.name).match("boot/vmlinuz-*"):
                taken = archive.extractfile(member)
                assert taken is not None
                image = taken.read()
                break
        else:
            raise _not_had(folder, "its package has no /boot/vmlinuz")
    if not kernel_version(image):
        raise _not_had(folder, "its package's /boot/vmlinuz is not a kernel for x86")
    new = files.with_name(OWN)
    new.write_bytes(image)
    return Kernel(new.replace(folder / _name(image)), kernel_version(image))


async def _run(
    folder: Path, at: Path, within_s: float, *command: str, stdout: int = asyncio.subprocess.PIPE
) -> str:
    """Run a program in *at*; what it wrote. It does not outlive this call, nor this process."""
    process = await asyncio.create_subprocess_exec(
        *on_all(_bound(command)), cwd=at, env={**os.environ, "LC_ALL": "C"},
        stdin=asyncio.subprocess.DEVNULL, stdout=stdout, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(within_s):
            out, errors = await process.communicate()
    except TimeoutError:
        raise _not_had(folder, f"{command[0]} did not end within {within_s:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        lines = [x.removeprefix("E: ") for x in errors.decode(errors="replace").splitlines() if x]
        raise _not_had(folder, "; ".join(lines[-2:]) or f"{command[0]} failed")
    return (out or b"").decode(errors="replace")


def _bound(command: Sequence[str]) -> list[str]:
    return [*DIES_WITH_PARENT, *command]


def _not_had(folder: Path, reason: str) -> SetupError:
    return SetupError(
        f"the package {PACKAGE}, whose kernel the boot benchmark starts, cannot be had: {reason}",
        field="scenario.cell.guest",
        code="no_kernel",
        remedy=f"run apt-get update where a Debian mirror can be reached, or put a kernel at "
        f"{folder / OWN}",
    )

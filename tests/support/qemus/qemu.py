"""Real QEMUs for tests: small, without firmware's help, stopped by their pid."""

from __future__ import annotations

import contextlib
import functools
import random
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

SERVES_WITHIN_S = 60
CHECKOUT = Path(__file__).parents[3]
OLD_QEMU = CHECKOUT / ".cache/qemu-7.2/qemu-system-x86_64"
"""QEMU 7.2 as vmtune/lab/bootstrap.sh --tests unpacks it beside the installed one."""

SMALL_PC = (
    "-machine", "pc", "-accel", "tcg", "-m", "64", "-nodefaults", "-display", "none",
    "-object", "iothread,id=iothread1",
    "-object", "iothread,id=iothread2",
    "-blockdev", "null-co,node-name=disk0,size=1048576",
    "-device", "virtio-blk-pci,id=virtio-disk0,drive=disk0,num-queues=4,iothread=iothread1",
    "-blockdev", "null-co,node-name=disk1,size=1048576",
    "-device", "ide-hd,id=ide-disk1,drive=disk1",
)  # fmt: skip
"""A guest that runs firmware and waits: enough memory to migrate, hardly any load."""


def memory_to_send(folder: Path, mebibytes: int = 24) -> tuple[str, ...]:
    """Random memory, for both sides of a migration: what firmware writes is sent within 0.2 s of
    post-copy, whatever the limit, since QEMU sends some 32 KiB between two looks at it."""
    folder.mkdir(parents=True, exist_ok=True)
    content = folder / "memory"
    content.write_bytes(random.Random(mebibytes).randbytes(mebibytes << 20))
    return ("-device", f"loader,file={content},addr=0x1000000,force-raw=on")


@dataclass(frozen=True)
class Build:
    """A QEMU program.

    :param why_not: why it cannot be used here; empty where it can.
    """

    label: str
    program: str
    why_not: str = ""

    @property
    def release(self) -> tuple[int, ...]:
        """Of its label: ``qemu-10.0.2``."""
        return tuple(map(int, re.findall(r"\d+", self.label)))


@functools.cache
def installed() -> Build:
    """The QEMU on the PATH."""
    program = shutil.which("qemu-system-x86_64")
    if program is None:
        return Build("qemu", "", "qemu-system-x86_64 is not installed (vmtune/lab/bootstrap.sh)")
    return Build(f"qemu-{_version(program)}", program)


@functools.cache
def old() -> Build:
    """QEMU 7.2, the oldest that is supported."""
    if not (OLD_QEMU.parent / ".complete").exists():
        why_not = "QEMU 7.2 is not unpacked (vmtune/lab/bootstrap.sh --tests)"
        return Build("qemu-7.2.22", "", why_not)
    return Build(f"qemu-{_version(str(OLD_QEMU))}", str(OLD_QEMU))


def builds() -> list[Build]:
    """Every QEMU that tests should run with, usable or not."""
    return [installed(), old()]


def alike() -> list[object]:
    """The same, of tests in which QEMU's release decides nothing: ``make test`` takes one, and
    ``make test-long`` both."""
    return [
        pytest.param(installed(), id=installed().label),
        pytest.param(old(), id=old().label, marks=pytest.mark.long),
    ]


def _version(program: str) -> str:
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"version (\d+\.\d+\.\d+)", text)
    assert match, text
    return match[1]


def _listened_on(path: Path, pid: int) -> bool:
    """Whether the socket is listened on in the process's network namespace: found without
    connecting, since a monitor serves one client. The flag is __SO_ACCEPTCON of the kernel's
    net/unix/af_unix.c."""
    try:
        lines = Path(f"/proc/{pid}/net/unix").read_text().splitlines()
    except OSError:
        return False  # it has ended
    fields = map(str.split, lines)
    return any(each[-1] == str(path) and each[3] == "00010000" for each in fields)


def _wait_until_served(path: Path) -> None:
    """Wait until the main loop carries out a command of the monitor, and let go of it."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(SERVES_WITHIN_S)
        client.connect(str(path))
        client.sendall(b'{"execute": "qmp_capabilities"}')
        heard = b""
        while b'"return"' not in heard:
            more = client.recv(4096)
            assert more, f"QEMU has ended, having said {heard!r}"
            heard += more


def cpu_s(pid: int) -> float:
    """CPU time of a process so far (clock_getcpuclockid(3))."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e9


class RunningQemu:
    """A QEMU process with a QMP socket."""

    def __init__(self, process: subprocess.Popen[bytes], socket: Path, log: Path) -> None:
        self.process = process
        self.socket = socket
        self._log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        """What it wrote to its standard error."""
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        """As if it had crashed."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it, and what it leaves behind when killed."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.kill()
        self.socket.unlink(missing_ok=True)


@contextlib.contextmanager
def running(
    build: Build,
    folder: Path,
    name: str = "vm",
    uuid: UUID | None = None,
    machine: Sequence[str] = SMALL_PC,
    extra: Sequence[str] = (),
    within: Sequence[str] = (),
) -> Iterator[RunningQemu]:
    """A QEMU whose monitor is ``folder/name.sock``, until the block is left. It serves: what is
    listened on may be so long before that, and drivers wait a second for a greeting.

    :param within: a command that becomes QEMU, such as one that enters a network namespace.
    """
    folder.mkdir(parents=True, exist_ok=True)
    monitor, log = folder / f"{name}.sock", folder / f"{name}.log"
    # Of its own, since a monitor serves one client; no driver takes a name like that for one.
    starting = folder / f"{name}.up"
    identity = ["-name", f"guest={name}"] + (["-uuid", str(uuid)] if uuid else [])
    command = [
        *within, build.program, *machine, *identity, *extra,
        "-qmp", f"unix:{monitor},server=on,wait=off",
        "-qmp", f"unix:{starting},server=on,wait=off",
    ]  # fmt: skip
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
        )
    qemu = RunningQemu(process, monitor, log)
    try:
        while not (_listened_on(monitor, process.pid) and _listened_on(starting, process.pid)):
            assert process.poll() is None, f"QEMU has ended: {qemu.said()}"
            time.sleep(0.01)
        _wait_until_served(starting)
        starting.unlink()
        yield qemu
    finally:
        qemu.stop()
        starting.unlink(missing_ok=True)

"""The lab's guest in a real QEMU of its own, and its memory read back."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from qemu.qmp import QMPClient

from tests.support.qemus.qemu import Build, RunningQemu, installed, running
from vmtune.lab.guest_serial import GuestFault, GuestPass, GuestStart, parse_serial

MIB = 1 << 20
MEMORY_BYTES = 64 * MIB
_QBOOT = Path("/usr/share/qemu/qboot.rom")
QBOOT = ("-bios", str(_QBOOT)) if _QBOOT.exists() else ()
"""A firmware that is quick, where it is installed."""
PATIENCE_S = 60


class Guest:
    """A running guest.

    :param serial: the log of its serial port.
    """

    def __init__(self, qemu: RunningQemu, qmp: QMPClient, serial: Path) -> None:
        self.qemu = qemu
        self.qmp = qmp
        self.serial = serial

    def events(self) -> list[GuestStart | GuestPass | GuestFault]:
        """All so far."""
        with self.serial.open(errors="replace") as lines:
            return list(parse_serial(lines))

    async def when(self, condition: Callable[[], bool]) -> None:
        """Wait until *condition* holds."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                assert self.qemu.process.poll() is None, self.qemu.said()
                await asyncio.sleep(0.01)

    async def until(self, number: int) -> tuple[GuestStart, list[GuestPass]]:
        """Wait until all workers have ended pass *number*: what they said up to then."""
        await self.when(lambda: self._have_ended(number))
        start, *rest = self.events()
        assert isinstance(start, GuestStart)
        return start, [event for event in rest if isinstance(event, GuestPass)]

    async def fault(self) -> GuestFault:
        """What it refuses."""
        await self.when(lambda: bool(self.events()))
        (event,) = self.events()
        assert isinstance(event, GuestFault)
        return event

    async def memory(self) -> bytes:
        """All of its memory at one moment."""
        await self.qmp.execute("stop")
        path = self.serial.with_name("memory")
        arguments: dict[str, object] = {"val": 0, "size": MEMORY_BYTES, "filename": str(path)}
        await self.qmp.execute("pmemsave", arguments)
        await self.qmp.execute("cont")
        return path.read_bytes()

    def _have_ended(self, number: int) -> bool:
        events = self.events()
        assert not any(isinstance(event, GuestFault) for event in events), events
        done = {e.worker for e in events if isinstance(e, GuestPass) and e.number >= number}
        return any(isinstance(e, GuestStart) and done == set(range(e.workers)) for e in events)


@asynccontextmanager
async def guest(
    program: Path,
    folder: Path,
    command_line: str,
    vcpus: int = 1,
    accelerator: str = "tcg",
    build: Build | None = None,
    firmware: Sequence[str] = QBOOT,
    extra: Sequence[str] = (),
) -> AsyncIterator[Guest]:
    """Run *program*, as :func:`vmtune.lab.guest_build.build_guest` has built it.

    :param firmware: QEMU's options for it; none: SeaBIOS.
    :param extra: more of QEMU's options; with a serial port among them, the log has to be as
        :class:`Guest` expects it.
    """
    serial = folder / "serial.log"
    serial.touch()
    machine = [
        *("-machine", "pc", "-accel", accelerator, "-cpu", "qemu64", "-smp", str(vcpus)),
        *("-m", str(MEMORY_BYTES // MIB), "-nodefaults", "-display", "none"),
        *("-kernel", str(program), "-append", command_line, *firmware, *extra),
    ]
    if "-serial" not in extra:
        machine += ["-serial", f"file:{serial}"]
    with (
        # Sockets have to have short paths.
        tempfile.TemporaryDirectory(prefix="vt-") as sockets,
        running(build or installed(), Path(sockets), machine=machine) as qemu,
    ):
        qmp = QMPClient("guest")
        await qmp.connect(str(qemu.socket))
        try:
            yield Guest(qemu, qmp, serial)
        finally:
            await qmp.disconnect()

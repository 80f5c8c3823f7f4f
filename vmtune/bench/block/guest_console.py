"""Listening to a guest that loads its disks: its results, and why it has stopped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from vmtune.bench.block.disks_line import BEAT, SERIAL
from vmtune.bench.migration.guest_listener import Lines
from vmtune.lab.guest_io import GuestIoPhase, GuestIoReport
from vmtune.lab.guest_serial import GuestFault, parse_line

_READ_BYTES = 1 << 16


class GuestConsole:
    """What the guest has told so far.

    :param now_ms: the time on the measurement's timeline; called as news comes.
    :ivar counted: when the requests that count began and ended, as far as the guest has told.
    :ivar fault: why the guest has stopped; None where it has not.
    """

    def __init__(self, now_ms: Callable[[], float]) -> None:
        self.report = GuestIoReport()
        self.counted: list[float] = []
        self.fault: GuestFault | None = None
        self._now_ms = now_ms
        self._news = asyncio.Event()

    @property
    def ended(self) -> bool:
        """It is done, or has stopped: nothing more comes."""
        return self.fault is not None or self.report.phase is GuestIoPhase.DONE

    async def wait(self, within_s: float) -> None:
        """Wait for news, not longer than *within_s*."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._news.wait()
        self._news.clear()

    async def _hear(self, stream: asyncio.StreamReader, take: Callable[[str], None]) -> None:
        lines = Lines()
        while data := await stream.read(_READ_BYTES):
            for line in lines.add(data):
                take(line)
            self._news.set()

    def take_result(self, line: str) -> None:
        """A line of the heartbeat's channel."""
        before = self.report.phase
        self.report.add(line)
        if self.report.phase is not before and self.report.phase in (
            GuestIoPhase.COUNTING,
            GuestIoPhase.ENDED,
        ):
            self.counted.append(self._now_ms())

    def take_serial(self, line: str) -> None:
        """A line of the serial port."""
        event = parse_line(line)
        if isinstance(event, GuestFault) and self.fault is None:
            self.fault = event

    async def _beats(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await self._hear(reader, self.take_result)

    async def _serial(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await self._hear(reader, self.take_serial)


@asynccontextmanager
async def guest_console(folder: Path, now_ms: Callable[[], float]) -> AsyncIterator[GuestConsole]:
    """Listen on the two sockets in *folder*, to which QEMU connects."""
    console = GuestConsole(now_ms)
    beats = await asyncio.start_unix_server(console._beats, folder / BEAT)
    try:
        serial = await asyncio.start_unix_server(console._serial, folder / SERIAL)
        try:
            yield console
        finally:
            serial.close()
    finally:
        beats.close()

"""Listening to a guest that loads its disks."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from vmtune.bench.block.disks_line import BEAT, SERIAL
from vmtune.bench.block.guest_console import GuestConsole, guest_console


async def test_it_hears_both_sockets_line_by_line() -> None:
    now = iter(range(1, 100))
    with tempfile.TemporaryDirectory(prefix="vt-") as name:
        async with guest_console(Path(name), lambda: float(next(now))) as console:
            _, beats = await asyncio.open_unix_connection(Path(name) / BEAT)
            _, serial = await asyncio.open_unix_connection(Path(name) / SERIAL)
            beats.write(b"io coun")
            await beats.drain()
            beats.write(b"ting\nio so_far requests=5\nio ended us=7\n")
            serial.write(b"SeaBIOS\nerror disk: has not answered for 30000 ms\n")
            async with asyncio.timeout(60):
                while not (console.ended and len(console.counted) == 2):
                    await console.wait(60)
            assert console.counted == [1, 2]
            assert console.report.so_far == 5
            assert console.fault is not None
            assert (console.fault.parameter, console.fault.reason) == (
                "disk", "has not answered for 30000 ms",
            )  # fmt: skip
            beats.close()
            serial.close()


async def test_waiting_ends_without_news() -> None:
    console = GuestConsole(lambda: 0.0)
    await console.wait(0)
    assert not console.ended

"""What systemd is told about the service (sd_notify(3), sd_watchdog_enabled(3))."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import structlog

log = structlog.get_logger(__name__)

_US = 1_000_000


def notify(message: str) -> None:
    """Notify systemd, if it started the service (sd_notify(3))."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        try:
            one.connect(address.replace("@", "\0", 1) if address[0] == "@" else address)
            one.sendall(message.encode())
        except OSError as error:
            log.warning("cannot notify systemd", reason=str(error))


@contextmanager
def reloading() -> Iterator[None]:
    """Tell systemd that the settings are read again, and at the end that they were."""
    notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
    try:
        yield
    finally:
        notify("READY=1")


def watchdog_s(environ: Mapping[str, str], pid: int) -> float | None:
    """How long systemd waits for a sign of life, in seconds; None where it waits for none.

    :param pid: this process: a variable that is inherited from another is not meant for it.
    """
    given = environ.get("WATCHDOG_USEC", "")
    meant = environ.get("WATCHDOG_PID", "") in ("", str(pid))
    return int(given) / _US if meant and given.isdecimal() and int(given) > 0 else None


async def watchdog() -> None:
    """Give signs of life from the event loop, until cancelled: twice as often as systemd asks."""
    within_s = watchdog_s(os.environ, os.getpid())
    while within_s is not None:
        notify("WATCHDOG=1")
        await asyncio.sleep(within_s / 2)

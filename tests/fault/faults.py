"""The faults: each begins at a random moment of a migration, and is over when its block ends."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.fault.checks import Try
from tests.fault.ground import Ground, Kind, qemu_pid
from tests.support.daemons import without_libvirtd
from tests.support.live import wait_for
from tests.support.sharing import TAKEN_OVER_WITHIN_S

_LINK = "veth0"
_CLOCK_BACK_S = (-86_400, -3_600, -60, -5)
_QEMU_STARTS_WITHIN_S = 3
_ADOPTED = "the other service to take over"

Inject = Callable[[Ground, Try, random.Random], str]
"""Brings the fault about and ends it; what a note of it says."""


@dataclass(frozen=True)
class Fault:
    """A fault.

    :param dead: what the record may say where the fault has ended the guest itself.
    """

    name: str
    kind: Kind
    inject: Inject
    dead: frozenset[str] = frozenset()


def _kill_service(ground: Ground, tried: Try, chance: random.Random) -> str:
    ground.services[0].kill()
    down_s = chance.uniform(0, 4)
    time.sleep(down_s)
    ground.services[0].start()
    return f"down for {down_s:.1f} s"


def _kill_one_of_two(ground: Ground, tried: Try, chance: random.Random) -> str:
    one, two = ground.sharing(0), ground.sharing(1)
    one.kill()
    ground.live.service = two
    begun = time.monotonic()
    wait_for(lambda: two.drives() == {"a", "b"}, _ADOPTED, TAKEN_OVER_WITHIN_S)
    return f"taken over after {time.monotonic() - begun:.0f} s"


def _stop_and_continue(ground: Ground, tried: Try, chance: random.Random) -> str:
    one, two = ground.sharing(0), ground.sharing(1)
    one.pause()
    short = chance.random() < 0.5
    if short:
        seconds = chance.uniform(0.5, 8)
        time.sleep(seconds)
        one.go_on()
        return f"for {seconds:.1f} s"
    ground.live.service = two
    wait_for(lambda: two.drives() == {"a", "b"}, _ADOPTED, TAKEN_OVER_WITHIN_S)
    one.go_on()
    assert one.process is not None
    one.process.wait(60)
    return "until it was taken over"


def _kill_qemu(which: str) -> Inject:
    def inject(ground: Ground, tried: Try, chance: random.Random) -> str:
        give_up = time.monotonic() + _QEMU_STARTS_WITHIN_S
        while (pid := qemu_pid(ground.live, which, tried.vm)) is None:
            if time.monotonic() > give_up:
                return "there was none any more"
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return ""

    return inject


def _kill_libvirtd(which: str) -> Inject:
    def inject(ground: Ground, tried: Try, chance: random.Random) -> str:
        down_s = chance.uniform(0, 4)
        with without_libvirtd(ground.live, which, signal.SIGKILL):
            time.sleep(down_s)
        return f"down for {down_s:.1f} s"

    return inject


def _cut_link(ground: Ground, tried: Try, chance: random.Random) -> str:
    seconds = chance.uniform(0.5, 6)
    _set_link(ground, "down")
    try:
        time.sleep(seconds)
    finally:
        _set_link(ground, "up")
    return f"for {seconds:.1f} s"


def _set_link(ground: Ground, to: str) -> None:
    command = ["ip", "-n", ground.live.settings.name_a, "link", "set", _LINK, to]
    subprocess.run(command, check=True, timeout=10)


def _restart_postgres(ground: Ground, tried: Try, chance: random.Random) -> str:
    assert ground.server is not None
    down_s = chance.uniform(0, 6)
    ground.server.stop()
    time.sleep(down_s)
    ground.server.start()
    return f"down for {down_s:.1f} s"


def _lock_database(ground: Ground, tried: Try, chance: random.Random) -> str:
    seconds = chance.uniform(1, 12)
    path = ground.folder / "vmtune.db"
    with contextlib.closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        other.execute("ROLLBACK")
    return f"for {seconds:.1f} s"


def _fill_disk(ground: Ground, tried: Try, chance: random.Random) -> str:
    seconds = chance.uniform(1, 10)
    ballast = ground.folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(512))
    time.sleep(seconds)
    ballast.unlink()
    return f"for {seconds:.1f} s"


def _set_clock_back(ground: Ground, tried: Try, chance: random.Random) -> str:
    by_s = chance.choice(_CLOCK_BACK_S)
    ground.clocked.set_clock(by_s)
    return f"by {-by_s} s"


_SOURCE_DIED = frozenset({"failed"})
_ARRIVED = frozenset({"failed", "completed"})
"""It dies on the destination once it has switched over: just before the record ends, or after."""
_ALL = (
    Fault("kill -9 of the service", Kind.SQLITE, _kill_service),
    Fault("kill -9 of one of two services", Kind.TWO, _kill_one_of_two),
    Fault("kill -9 of the source QEMU", Kind.SQLITE, _kill_qemu("a"), _SOURCE_DIED),
    Fault("kill -9 of the destination QEMU", Kind.SQLITE, _kill_qemu("b"), _ARRIVED),
    Fault("kill -9 of the source's libvirtd", Kind.SQLITE, _kill_libvirtd("a")),
    Fault("kill -9 of the destination's libvirtd", Kind.SQLITE, _kill_libvirtd("b")),
    Fault("link down and up", Kind.SQLITE, _cut_link),
    Fault("PostgreSQL restarted", Kind.POSTGRES, _restart_postgres),
    Fault("database locked", Kind.SQLITE, _lock_database),
    Fault("disk full", Kind.SMALL_DISK, _fill_disk),
    Fault("clock set back", Kind.SQLITE, _set_clock_back),
    Fault("SIGSTOP and SIGCONT", Kind.TWO, _stop_and_continue),
)
FAULTS = {
    short: fault
    for short, fault in zip(
        ("service", "one-of-two", "source-qemu", "destination-qemu", "source-libvirtd",
         "destination-libvirtd", "link", "postgres", "locked", "disk", "clock", "stopped"),
        _ALL,
        strict=True,
    )
}  # fmt: skip
"""Each by the short name that the command takes."""

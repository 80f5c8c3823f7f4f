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
from tests.fault.direct import DirectLive
from tests.fault.testbed import FaultTestbed, Kind, qemu_pid
from tests.support.daemons import without_libvirtd
from tests.support.live import wait_for
from tests.support.sharing import TAKEN_OVER_WITHIN_S
from vmtune import lab
from vmtune.client.connection.errors import ClientError, Refused
from vmtune.errors import LabError

_LINK = "veth0"
_CLOCK_BACK_S = (-86_400, -3_600, -60, -5)
_QEMU_STARTS_WITHIN_S = 3
_ADOPTED = "the other service to take over"

Inject = Callable[[FaultTestbed, Try, random.Random], str]
"""Brings the fault about and ends it; what a note of it says."""


@dataclass(frozen=True)
class Fault:
    """A fault.

    :param dead: what the record may say where the fault has ended the guest itself.
    :param stays: how the record may stay without an end.
    :param postcopy: it begins after the switch to post-copy.
    :param slow: it takes minutes, so it is tried by ``make fault`` alone.
    :param mend: what ends a fault that lasts until the record is settled, or stays.
    :param says: codes of problems of which the record has one where it is not settled meanwhile.
    :param within_s: the last moment at which it begins.
    """

    name: str
    kind: Kind
    inject: Inject
    dead: frozenset[str] = frozenset()
    stays: frozenset[str] = frozenset()
    postcopy: bool = False
    slow: bool = False
    mend: Callable[[FaultTestbed], None] | None = None
    says: frozenset[str] = frozenset()
    within_s: float = 3.5


def _kill_service(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    testbed.services[0].kill()
    down_s = chance.uniform(0, 4)
    time.sleep(down_s)
    testbed.services[0].start()
    return f"down for {down_s:.1f} s"


def _kill_one_of_two(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    one, two = testbed.sharing(0), testbed.sharing(1)
    one.kill()
    testbed.live.service = two
    begun = time.monotonic()
    wait_for(lambda: two.drives() == {"a", "b"}, _ADOPTED, TAKEN_OVER_WITHIN_S)
    return f"taken over after {time.monotonic() - begun:.0f} s"


def _stop_and_continue(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    one, two = testbed.sharing(0), testbed.sharing(1)
    one.pause()
    short = chance.random() < 0.5
    if short:
        seconds = chance.uniform(0.5, 8)
        time.sleep(seconds)
        one.go_on()
        return f"for {seconds:.1f} s"
    testbed.live.service = two
    wait_for(lambda: two.drives() == {"a", "b"}, _ADOPTED, TAKEN_OVER_WITHIN_S)
    one.go_on()
    assert one.process is not None
    one.process.wait(60)
    return "until it was taken over"


def _kill_qemu(which: str) -> Inject:
    def inject(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
        give_up = time.monotonic() + _QEMU_STARTS_WITHIN_S
        while (pid := qemu_pid(testbed.live, which, tried.vm)) is None:
            if time.monotonic() > give_up:
                return "there was none any more"
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return ""

    return inject


def _kill_libvirtd(which: str) -> Inject:
    def inject(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
        down_s = chance.uniform(0, 4)
        with without_libvirtd(testbed.live, which, signal.SIGKILL):
            time.sleep(down_s)
        return f"down for {down_s:.1f} s"

    return inject


def _stop_then_kill_qemu(which: str) -> Inject:
    """As a host that hangs, and is fenced."""

    def inject(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
        pid = qemu_pid(testbed.live, which, tried.vm)
        if pid is None:
            return "there was none any more"
        seconds = chance.uniform(1, 8)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(pid, signal.SIGKILL)
        return f"stopped for {seconds:.1f} s"

    return inject


def _lose_link(abort: bool = False) -> Inject:
    """Until it is mended, when the record is settled or stays."""

    def inject(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
        _set_link(testbed, "down")
        if not abort:
            return ""
        seconds = chance.uniform(0, 5)
        time.sleep(seconds)
        with contextlib.suppress(ClientError, Refused):
            testbed.live.client.delete(f"/migrations/{tried.migration}")
        return f"aborted after {seconds:.1f} s"

    return inject


def _mend_link(testbed: FaultTestbed) -> None:
    _set_link(testbed, "up")


def _cut_link(at_most_s: float, at_least_s: float = 0.5) -> Inject:
    def inject(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
        seconds = chance.uniform(at_least_s, at_most_s)
        _set_link(testbed, "down")
        try:
            time.sleep(seconds)
        finally:
            _set_link(testbed, "up")
        return f"for {seconds:.1f} s"

    return inject


def _set_link(testbed: FaultTestbed, to: str) -> None:
    command = ["ip", "-n", testbed.live.settings.name_a, "link", "set", _LINK, to]
    subprocess.run(command, check=True, timeout=10)


def _restart_postgres(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    assert testbed.server is not None
    down_s = chance.uniform(0, 6)
    testbed.server.stop()
    time.sleep(down_s)
    testbed.server.start()
    return f"down for {down_s:.1f} s"


def _lock_database(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    seconds = chance.uniform(1, 12)
    path = testbed.folder / "vmtune.db"
    with contextlib.closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        other.execute("ROLLBACK")
    return f"for {seconds:.1f} s"


def _fill_disk(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    seconds = chance.uniform(1, 10)
    ballast = testbed.folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(512))
    time.sleep(seconds)
    ballast.unlink()
    return f"for {seconds:.1f} s"


def _set_clock_back(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    by_s = chance.choice(_CLOCK_BACK_S)
    testbed.clocked.set_clock(by_s)
    return f"by {-by_s} s"


def _abort_by_another(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    """As an operator does with virsh."""
    try:
        lab.virsh(testbed.live.host("a").uri, "domjobabort", tried.vm.name)
    except LabError:
        return "there was nothing to abort"
    return ""


def _pause_by_another(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    """As a program does that takes a snapshot; it resumes the guest where it finds it."""
    try:
        lab.virsh(testbed.live.host("a").uri, "suspend", tried.vm.name)
    except LabError:
        return "it had left"
    seconds = chance.uniform(0.2, 4)
    time.sleep(seconds)
    for host in ("a", "b"):
        with contextlib.suppress(LabError):
            lab.virsh(testbed.live.host(host).uri, "resume", tried.vm.name)
    return f"for {seconds:.1f} s"


def _ask(command: str) -> Inject:
    """As another client of the source's QEMU does."""

    def inject(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
        taken = _direct(testbed).ask("a", tried.vm, command)
        return "" if taken else "QEMU refused it"

    return inject


def _pause_and_continue(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    if not _direct(testbed).ask("a", tried.vm, "stop"):
        return "it had left"
    seconds = chance.uniform(0.2, 4)
    time.sleep(seconds)
    # Where it stands paused: QEMU would start the old copy of one that has left, too.
    for host, state in testbed.live.states(tried.vm).items():
        if state == "paused":
            _direct(testbed).ask(host, tried.vm, "cont")
    return f"for {seconds:.1f} s"


def _direct(testbed: FaultTestbed) -> DirectLive:
    assert isinstance(testbed.live, DirectLive)
    return testbed.live


_SOURCE_DIED = frozenset({"failed"})
_ARRIVED = frozenset({"failed", "completed"})
"""It dies on the destination once it has switched over: just before the record ends, or after."""
_SPLIT = frozenset({"postcopy-paused"})
"""What the guest lacks cannot be recovered: nobody can end the record but who ends the guest."""
FAULTS = {
    "service": Fault("kill -9 of the service", Kind.SQLITE, _kill_service),
    "one-of-two": Fault("kill -9 of one of two services", Kind.TWO, _kill_one_of_two),
    "source-qemu": Fault("kill -9 of the source QEMU", Kind.SQLITE, _kill_qemu("a"), _SOURCE_DIED),
    "destination-qemu": Fault(
        "kill -9 of the destination QEMU", Kind.SQLITE, _kill_qemu("b"), _ARRIVED
    ),
    "source-libvirtd": Fault("kill -9 of the source's libvirtd", Kind.SQLITE, _kill_libvirtd("a")),
    "destination-libvirtd": Fault(
        "kill -9 of the destination's libvirtd", Kind.SQLITE, _kill_libvirtd("b")
    ),
    "link": Fault("link down and up", Kind.SQLITE, _cut_link(6)),
    "postgres": Fault("PostgreSQL restarted", Kind.POSTGRES, _restart_postgres),
    "locked": Fault("database locked", Kind.SQLITE, _lock_database),
    "disk": Fault("disk full", Kind.SMALL_DISK, _fill_disk),
    "clock": Fault("clock set back", Kind.SQLITE, _set_clock_back),
    "abort": Fault("aborted by another client", Kind.SQLITE, _abort_by_another),
    "pause": Fault("guest paused by another client", Kind.SQLITE, _pause_by_another),
    "stopped": Fault("SIGSTOP and SIGCONT", Kind.TWO, _stop_and_continue),
    "long-link": Fault("link down for up to a minute", Kind.SQLITE, _cut_link(60), slow=True),
    "postcopy-link": Fault(
        "in post-copy: link down for up to a minute", Kind.SQLITE, _cut_link(60), postcopy=True
    ),
    "postcopy-service": Fault(
        "in post-copy: kill -9 of the service", Kind.SQLITE, _kill_service, postcopy=True
    ),
    "postcopy-source-libvirtd": Fault(
        "in post-copy: kill -9 of the source's libvirtd",
        Kind.SQLITE,
        _kill_libvirtd("a"),
        postcopy=True,
    ),
    "postcopy-destination-libvirtd": Fault(
        "in post-copy: kill -9 of the destination's libvirtd",
        Kind.SQLITE,
        _kill_libvirtd("b"),
        postcopy=True,
    ),
    "postcopy-source-qemu": Fault(
        "in post-copy: kill -9 of the source QEMU",
        Kind.SQLITE,
        _kill_qemu("a"),
        stays=_SPLIT,
        postcopy=True,
    ),
    "postcopy-destination-qemu": Fault(
        "in post-copy: kill -9 of the destination QEMU",
        Kind.SQLITE,
        _kill_qemu("b"),
        _ARRIVED,
        postcopy=True,
    ),
    "direct-postcopy-link": Fault(
        "without libvirt, in post-copy: link down for up to a minute",
        Kind.DIRECT,
        _cut_link(60),
        postcopy=True,
    ),
    "direct-postcopy-service": Fault(
        "without libvirt, in post-copy: kill -9 of the service",
        Kind.DIRECT,
        _kill_service,
        postcopy=True,
    ),
    "direct-postcopy-source-qemu": Fault(
        "without libvirt, in post-copy: kill -9 of the source QEMU",
        Kind.DIRECT,
        _kill_qemu("a"),
        stays=_SPLIT,
        postcopy=True,
    ),
    "direct-postcopy-destination-qemu": Fault(
        "without libvirt, in post-copy: kill -9 of the destination QEMU",
        Kind.DIRECT,
        _kill_qemu("b"),
        _ARRIVED,
        postcopy=True,
    ),
    "stopped-destination": Fault(
        "destination QEMU stopped, then killed",
        Kind.SQLITE,
        _stop_then_kill_qemu("b"),
        _ARRIVED,
    ),
    "postcopy-stopped-destination": Fault(
        "in post-copy: destination QEMU stopped, then killed",
        Kind.SQLITE,
        _stop_then_kill_qemu("b"),
        _ARRIVED,
        postcopy=True,
        within_s=5,
    ),
    "lost-link": Fault("link down for good", Kind.SQLITE, _lose_link(), slow=True, mend=_mend_link),
    "postcopy-lost-link": Fault(
        "in post-copy: link down for good",
        Kind.SQLITE,
        _lose_link(),
        stays=_SPLIT,
        postcopy=True,
        slow=True,
        mend=_mend_link,
        says=frozenset({"postcopy_stalled", "postcopy_paused"}),
    ),
    "postcopy-switch-link": Fault(
        "within 0.1 s of the switch: link down for 35 to 60 s",
        Kind.SQLITE,
        _cut_link(60, 35),
        postcopy=True,
        slow=True,
        within_s=0.1,
    ),
    "postcopy-switch-libvirtd": Fault(
        "within 0.1 s of the switch: kill -9 of the destination's libvirtd",
        Kind.SQLITE,
        _kill_libvirtd("b"),
        postcopy=True,
        slow=True,
        within_s=0.1,
    ),
    "direct-service": Fault("without libvirt: kill -9 of the service", Kind.DIRECT, _kill_service),
    "direct-source-qemu": Fault(
        "without libvirt: kill -9 of the source QEMU", Kind.DIRECT, _kill_qemu("a"), _SOURCE_DIED
    ),
    "direct-destination-qemu": Fault(
        "without libvirt: kill -9 of the destination QEMU",
        Kind.DIRECT,
        _kill_qemu("b"),
        _ARRIVED,
    ),
    "direct-stopped-destination": Fault(
        "without libvirt: destination QEMU stopped, then killed",
        Kind.DIRECT,
        _stop_then_kill_qemu("b"),
        _ARRIVED,
    ),
    "direct-link": Fault("without libvirt: link down and up", Kind.DIRECT, _cut_link(6)),
    "direct-lost-link": Fault(
        "without libvirt: link down for good, then aborted",
        Kind.DIRECT,
        _lose_link(abort=True),
        slow=True,
        mend=_mend_link,
        says=frozenset({"abort_waits", "cancel_hangs"}),
    ),
    "direct-abort": Fault(
        "without libvirt: aborted by another client", Kind.DIRECT, _ask("migrate_cancel")
    ),
    "direct-pause": Fault(
        "without libvirt: guest paused by another client", Kind.DIRECT, _pause_and_continue
    ),
    "direct-postcopy-pause": Fault(
        "without libvirt: post-copy paused by another client",
        Kind.DIRECT,
        _ask("migrate-pause"),
        postcopy=True,
    ),
    "direct-postcopy-switch-link": Fault(
        "without libvirt, within 0.1 s of the switch: link down for 35 to 60 s",
        Kind.DIRECT,
        _cut_link(60, 35),
        postcopy=True,
        slow=True,
        within_s=0.1,
    ),
    "direct-postcopy-stopped-destination": Fault(
        "without libvirt, in post-copy: destination QEMU stopped, then killed",
        Kind.DIRECT,
        _stop_then_kill_qemu("b"),
        _ARRIVED,
        postcopy=True,
        within_s=5,
    ),
}
"""Each by the short name that the command takes."""

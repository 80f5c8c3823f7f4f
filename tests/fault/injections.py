"""How each fault is brought about, and ended."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fault.checks import Try
from tests.fault.direct import DISK, DirectLive
from tests.fault.testbed import FaultTestbed, qemu_pid
from tests.support.hosts.daemons import without_libvirtd
from tests.support.hosts.live import wait_for
from tests.support.hosts.local_disks import FOLDER, machines
from tests.support.hosts.machines import said
from tests.support.hosts.sharing import TAKEN_OVER_WITHIN_S
from vmtune import lab
from vmtune.client.connection.errors import ClientError, Refused
from vmtune.errors import LabError

_LINK = "veth0"
_MIGRATION_LINK = "veth1"
_BALLAST = f"{FOLDER}/ballast"
_CLOCK_BACK_S = (-86_400, -3_600, -60, -5)
_QEMU_STARTS_WITHIN_S = 3
_DISK_USED_WITHIN_S = 20
_RESUMES_WITHIN_S = 30
_ADOPTED = "the other service to take over"

AskQemu = Callable[..., Any]
"""What a host's QEMU answers to a command; None where it refuses or is not there."""
Inject = Callable[[FaultTestbed, Try, random.Random], str]
"""Brings the fault about and ends it; what a note of it says."""


def kill_service(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    testbed.services[0].kill()
    down_s = chance.uniform(0, 4)
    time.sleep(down_s)
    testbed.services[0].start()
    return f"down for {down_s:.1f} s"


def kill_one_of_two(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    one, two = testbed.sharing(0), testbed.sharing(1)
    one.kill()
    testbed.live.service = two
    begun = time.monotonic()
    wait_for(lambda: two.drives() == {"a", "b"}, _ADOPTED, TAKEN_OVER_WITHIN_S)
    return f"taken over after {time.monotonic() - begun:.0f} s"


def stop_and_continue(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
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


def kill_qemu(which: str) -> Inject:
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


def kill_libvirtd(which: str) -> Inject:
    def inject(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
        down_s = chance.uniform(0, 4)
        with without_libvirtd(testbed.live, which, signal.SIGKILL):
            time.sleep(down_s)
        return f"down for {down_s:.1f} s"

    return inject


def stop_then_kill_qemu(which: str) -> Inject:
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


def lose_link(abort: bool = False) -> Inject:
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


def mend_link(testbed: FaultTestbed) -> None:
    _set_link(testbed, "up")


def cut_link(at_most_s: float, at_least_s: float = 0.5) -> Inject:
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
    settings = testbed.live.settings
    for link in (_LINK, _MIGRATION_LINK) if settings.machines else (_LINK,):
        command = ["ip", "-n", settings.name_a, "link", "set", link, to]
        subprocess.run(command, check=True, timeout=10)


def restart_postgres(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    assert testbed.server is not None
    down_s = chance.uniform(0, 6)
    testbed.server.stop()
    time.sleep(down_s)
    testbed.server.start()
    return f"down for {down_s:.1f} s"


def lock_database(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    seconds = chance.uniform(1, 12)
    path = testbed.folder / "vmtune.db"
    with contextlib.closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        other.execute("ROLLBACK")
    return f"for {seconds:.1f} s"


def fill_disk(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
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


def fill_images(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    """Until the record is settled, or stays: see :func:`empty_images`."""
    if isinstance(testbed.live, DirectLive):
        with _ballast(testbed.live).open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 16))
        return ""
    b = machines(testbed.live)[1]
    said(b, "sh", "-c", f"dd if=/dev/zero of={_BALLAST} bs=64k oflag=direct 2>/dev/null || true")
    return ""


def empty_images(testbed: FaultTestbed) -> None:
    if isinstance(testbed.live, DirectLive):
        _ballast(testbed.live).unlink(missing_ok=True)
        return
    said(machines(testbed.live)[1], "rm", "-f", _BALLAST)


def _ballast(live: DirectLive) -> Path:
    return live.images("b") / "ballast"


def set_clock_back(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    by_s = chance.choice(_CLOCK_BACK_S)
    testbed.clocked.set_clock(by_s)
    return f"by {-by_s} s"


def abort_by_another(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    """As an operator does with virsh."""
    try:
        lab.virsh(testbed.live.host("a").uri, "domjobabort", tried.vm.name)
    except LabError:
        return "there was nothing to abort"
    return ""


def pause_by_another(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
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


def fail_disk(which: str) -> Inject:
    """A host's disk fails; an operator mends it, and resumes the guest where it stands.

    It does not fail where the guest has left that host: the other's QEMU has the disk to itself.
    """

    def inject(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
        live = testbed.live
        ask_qemu = live.ask if isinstance(live, DirectLive) else _by_libvirt(testbed)
        fails = chance.choice(("read", "write"))
        whole = ask_qemu(which, tried.vm, "qom-get", path=DISK, property="drive")
        if whole is None:
            return "it had left"
        rule = {"event": "none", "iotype": fails, "errno": errno.EIO}
        broken = {"driver": "blkdebug", "node-name": "broken", "image": whole}
        for command, arguments in (
            ("blockdev-add", {**broken, "inject-error": [rule]}),
            ("qom-set", {"path": DISK, "property": "drive", "value": "broken"}),
        ):
            if ask_qemu(which, tried.vm, command, **arguments) is None:
                return "it had left"
        begun = time.monotonic()
        while not (stopped := _stopped_by_disk(ask_qemu, tried)):
            if time.monotonic() - begun > _DISK_USED_WITHIN_S or not ask_qemu(
                which, tried.vm, "query-status"
            ):
                return f"{fails}s failed, and it left for where they do not"
            time.sleep(0.02)
        again = chance.random() < 0.5
        if again:
            # An operator's first attempt comes too early: it stops with the same error.
            _go_on(testbed, ask_qemu, tried)
        seconds = chance.uniform(0.2, 4)
        time.sleep(seconds)
        ask_qemu(which, tried.vm, "qom-set", path=DISK, property="drive", value=whole)
        give_up = time.monotonic() + _RESUMES_WITHIN_S
        while _stopped_by_disk(ask_qemu, tried) and time.monotonic() < give_up:
            _go_on(testbed, ask_qemu, tried)
            time.sleep(0.1)
        twice = ", resumed once in vain" if again else ""
        return f"{fails}s failed: the guest stood on {stopped} for {seconds:.1f} s{twice}"

    return inject


def _go_on(testbed: FaultTestbed, ask_qemu: AskQemu, tried: Try) -> None:
    for host in _stopped_by_disk(ask_qemu, tried):
        if isinstance(testbed.live, DirectLive):
            ask_qemu(host, tried.vm, "cont")
            continue
        with contextlib.suppress(LabError):
            lab.virsh(testbed.live.host(host).uri, "resume", tried.vm.name)


def _stopped_by_disk(ask_qemu: AskQemu, tried: Try) -> str:
    """The host where the guest stands since its disk failed; empty where on none."""
    for host in "ab":  # libvirt lets nobody ask a destination before the guest is there
        said = ask_qemu(host, tried.vm, "query-status")
        if said is not None and said["status"] == "io-error":
            return host
    return ""


def _by_libvirt(testbed: FaultTestbed) -> AskQemu:
    def ask_qemu(which: str, vm: lab.LabVm, command: str, **arguments: object) -> Any:
        wanted = json.dumps({"execute": command, "arguments": arguments})
        uri = testbed.live.host(which).uri
        try:
            said = json.loads(lab.virsh(uri, "qemu-monitor-command", vm.name, wanted))
        except LabError:
            return None
        return said.get("return")

    return ask_qemu


def ask(command: str) -> Inject:
    """As another client of the source's QEMU does."""

    def inject(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
        taken = _direct(testbed).ask("a", tried.vm, command)
        return "QEMU refused it" if taken is None else ""

    return inject


def pause_and_continue(testbed: FaultTestbed, tried: Try, chance: random.Random) -> str:
    if _direct(testbed).ask("a", tried.vm, "stop") is None:
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

"""The two-host lab, for real: up, a migration, down, and after every accident."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.hosts.live import why_no_lab
from vmtune import lab
from vmtune.errors import LabError
from vmtune.lab.guest_serial import (
    GuestEvent,
    GuestPass,
    GuestStart,
    parse_serial,
)
from vmtune.lab.marker import MARKER_NAME, read_marker
from vmtune.lab.namespaces import namespace_exists, namespace_inode, processes_in
from vmtune.model.workload import Workload

ROOT = Path(__file__).parents[2]
LIBVIRT_9 = ROOT / ".cache/libvirt-9"
QEMU_7 = ROOT / ".cache/qemu-7.2/qemu-system-x86_64"
PATIENCE_S = 60


NO_LAB = why_no_lab()
needs_lab = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"still waiting for {what}"
        time.sleep(0.02)


def running(program: str) -> bool:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if program in file.read_text().split("\0"):
                return True
    return False


def events(serial: Path) -> list[GuestEvent]:
    with serial.open(errors="replace") as lines:
        return list(parse_serial(lines))


def passes(serial: Path) -> list[GuestPass]:
    return [event for event in events(serial) if isinstance(event, GuestPass)]


def wait_for_more_passes(serial: Path) -> None:
    seen = len(passes(serial))
    wait_for(lambda: len(passes(serial)) > seen, "the guest to go on")


@dataclass
class Bench:
    """Settings of a lab of the test's own, and what its namespaces were."""

    settings: lab.LabSettings
    inodes: tuple[int, ...] = ()

    def up(self) -> lab.LabStatus:
        status = lab.up(self.settings)
        self.remember()
        return status

    def remember(self) -> None:
        self.inodes = tuple(namespace_inode(name) for name in self.names)

    @property
    def names(self) -> tuple[str, str]:
        return self.settings.name_a, self.settings.name_b

    def assert_nothing_left(self) -> None:
        assert not any(namespace_exists(name) for name in self.names)
        assert [pid for inode in self.inodes for pid in processes_in(inode)] == []
        assert not self.settings.folder.exists()
        assert str(self.settings.folder) not in Path("/proc/self/mountinfo").read_text()
        assert lab.status(self.settings).state == "down"


@pytest.fixture
def bench() -> Iterator[Bench]:
    tag = secrets.token_hex(3)
    net = f"10.{secrets.randbelow(50) + 180}.{secrets.randbelow(256)}"
    parent = Path(tempfile.mkdtemp(prefix="vmtune-test-", dir="/run"))
    settings = lab.LabSettings(
        name_a=f"vt-{tag}-a",
        name_b=f"vt-{tag}-b",
        address_a=f"{net}.1/24",
        address_b=f"{net}.2/24",
        folder=parent / "lab",
    )
    made = Bench(settings)
    try:
        yield made
    finally:
        try:
            lab.down(settings)
        finally:
            shutil.rmtree(parent)


# Without rest a guest under TCG dirties memory faster than two busy
# processors can copy it.
WORK = Workload(region_bytes=8 << 20, idle_ms=50)


def small_vm() -> lab.VmSettings:
    return lab.VmSettings(memory_bytes=128 << 20, workload=WORK)


class Ears:
    """Listens on two sockets, to which a VM's serial port and its heartbeat are connected.

    ``heard`` has for each what came over each connection, that of the first QEMU first.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.heard: dict[str, list[bytearray]] = {"serial": [], "beat": []}
        self._open = [self._listen(name) for name in self.heard]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Once all QEMUs have ended."""
        for listening, _ in self._open:
            listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def _listen(self, name: str) -> tuple[socket.socket, list[bytearray]]:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(self.folder / name))
        listening.listen()
        return listening, self.heard[name]

    def _run(self) -> None:
        """All the time: a QEMU whose beats are not read soon stands still."""
        with selectors.DefaultSelector() as selector:
            for listening, connections in self._open:
                selector.register(listening, selectors.EVENT_READ, connections)
            while selector.get_map():
                for key, _ in selector.select():
                    assert isinstance(key.fileobj, socket.socket)
                    if isinstance(key.data, bytearray):
                        data = key.fileobj.recv(65536)
                        key.data.extend(data)
                        ended = not data
                    else:
                        ended = not self._accept(key.fileobj, key.data, selector)
                    if ended:
                        selector.unregister(key.fileobj)
                        key.fileobj.close()

    @staticmethod
    def _accept(
        listening: socket.socket,
        connections: list[bytearray],
        selector: selectors.BaseSelector,
    ) -> bool:
        try:
            stream, _ = listening.accept()
        except OSError:
            return False  # it was shut down
        connections.append(bytearray())
        selector.register(stream, selectors.EVENT_READ, connections[-1])
        return True


@needs_lab
@pytest.mark.parametrize("libvirt", ["11", "9"])
def test_a_vm_migrates_there_and_back(bench: Bench, libvirt: str) -> None:
    if libvirt == "9":
        if not (LIBVIRT_9 / ".complete").exists():
            pytest.skip("no libvirt 9 is unpacked: `bootstrap.sh --tests` does, on Debian 12")
        bench.settings = replace(bench.settings, libvirt_root=LIBVIRT_9, qemu=QEMU_7)
    a, b = bench.up().hosts
    version = lab.virsh(a.uri, "version", "--daemon")
    assert f"Running against daemon: {libvirt}." in version

    disk = lab.DiskSettings(queues=2, iothread=1, read_only=libvirt == "9")
    ears = Ears(bench.settings.folder / "ears")
    settings = replace(
        small_vm(),
        workload=replace(WORK, beat_ms=10),
        vcpus=2,
        iothreads=1,
        disks=(disk,),
        listener=ears.folder,
    )
    vm = lab.define_vm(bench.settings, settings)
    wait_for(lambda: len(passes(vm.serial)) > 2, "the guest's first passes")
    for source, destination in ((a, b), (b, a)):
        options = ("--live", "--p2p", "--persistent", "--undefinesource")
        parallel = ("--parallel", "--parallel-connections", "2")
        lab.virsh(
            source.uri,
            *("migrate", *options, *parallel, vm.name, destination.peer_uri),
            timeout_s=PATIENCE_S,
        )
        vms = lab.status(bench.settings).vms
        assert vms == (lab.VmStatus(vm.name, destination.name, "running"),)
        wait_for_more_passes(vm.serial)

    lab.virsh(a.uri, "destroy", vm.name)
    # Who listened has heard the same as is in the log, and both hearts on each host.
    ears.close()
    assert b"".join(ears.heard["serial"]) == vm.serial.read_bytes()
    # One guest all along: started once, its passes counted without a gap.
    (start,) = (event for event in events(vm.serial) if isinstance(event, GuestStart))
    assert (start.workload, start.workers) == (settings.workload, 2)
    for worker in range(2):
        number = 0
        for event in passes(vm.serial):
            if event.worker == worker:
                assert event.number - event.passes == number, vm.serial.read_text(errors="replace")
                number = event.number
    assert [set(beats) for beats in ears.heard["beat"]] == [set(b"01")] * 3

    lab.down(bench.settings)
    bench.assert_nothing_left()


@needs_lab
def test_up_again_finds_the_same_lab(bench: Bench) -> None:
    first = bench.up()
    assert first.running
    assert lab.up(bench.settings) == first
    other = replace(bench.settings, env=(("X", "1"),))
    with pytest.raises(LabError) as refused:
        lab.up(other)
    assert refused.value.problems[0].code == "lab_exists"
    assert lab.status(bench.settings) == first


@needs_lab
def test_down_after_the_daemons_were_killed(bench: Bench) -> None:
    status = bench.up()
    vm = lab.define_vm(bench.settings, small_vm())
    for host in status.hosts:
        assert host.libvirtd_pid is not None
        os.kill(host.libvirtd_pid, signal.SIGKILL)
    wait_for(lambda: lab.status(bench.settings).state == "broken", "the daemons to end")
    assert processes_in(bench.inodes[0]), "QEMU should have outlived its daemon"
    with pytest.raises(LabError, match="not whole"):
        lab.up(bench.settings)
    with pytest.raises(LabError, match="no lab is up"):
        lab.define_vm(bench.settings, small_vm())
    lab.down(bench.settings)
    bench.assert_nothing_left()
    assert not vm.serial.exists()


@needs_lab
@pytest.mark.parametrize("reached", [MARKER_NAME, "slow", "a/hosts", "b/run/libvirtd.pid"])
def test_down_after_up_was_killed(bench: Bench, reached: str, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from vmtune import lab; s = sys.argv[1:];"
        "lab.up(lab.LabSettings(*s[:4], folder=Path(s[4])))"
    )
    settings = bench.settings
    arguments = [*bench.names, settings.address_a, settings.address_b, str(settings.folder)]
    # Its `ip` outlives it by a second, and makes the name when `down` is at work already.
    slow = tmp_path / "ip"
    real = shutil.which("ip")
    slow.write_text(
        f'#!/bin/sh\n[ "$1" = netns ] && : >{settings.folder}/slow && sleep 1\nexec {real} "$@"\n'
    )
    slow.chmod(0o755 if reached == "slow" else 0o644)
    path = f"{tmp_path}:{os.environ['PATH']}"
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], cwd=ROOT, env={**os.environ, "PATH": path}
    )
    try:
        wait_for((settings.folder / reached).exists, reached)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
    bench.remember()
    marker = read_marker(settings.folder)
    assert marker is not None
    assert not marker.complete
    assert lab.status(settings).state == "broken"
    lab.down(settings)
    wait_for(lambda: not running(str(slow)), "the slow ip to end")
    bench.assert_nothing_left()
    lab.down(settings)


@needs_lab
@pytest.mark.parametrize("program", ["qemu", "libvirtd"])
def test_up_that_fails_leaves_nothing(bench: Bench, program: str) -> None:
    false = Path("/bin/false")
    if program == "qemu":
        bench.settings = replace(bench.settings, qemu=false)
    else:
        bench.settings = replace(bench.settings, libvirtd=false)
    with pytest.raises(LabError, match="could not"):
        lab.up(bench.settings)
    bench.assert_nothing_left()


@needs_lab
@pytest.mark.parametrize("which", ["name_a", "name_b"])
def test_a_name_of_somebody_else_is_left_alone(bench: Bench, which: str) -> None:
    name = getattr(bench.settings, which)
    subprocess.run(["ip", "netns", "add", name], check=True, timeout=10)
    try:
        inode = namespace_inode(name)
        with pytest.raises(LabError) as refused:
            lab.up(bench.settings)
        (problem,) = refused.value.problems
        assert (problem.field, problem.code) == (which, "name_taken")
        lab.down(bench.settings)
        assert namespace_inode(name) == inode
        assert not bench.settings.folder.exists()
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True, timeout=10)


@needs_lab
def test_a_name_given_away_meanwhile_is_left_alone(bench: Bench) -> None:
    bench.up()
    lab.define_vm(bench.settings, small_vm())
    name = bench.settings.name_a
    subprocess.run(["ip", "netns", "delete", name], check=True, timeout=10)
    subprocess.run(["ip", "netns", "add", name], check=True, timeout=10)
    try:
        inode = namespace_inode(name)
        assert inode not in bench.inodes
        lab.down(bench.settings)
        assert namespace_inode(name) == inode
        assert [pid for inode in bench.inodes for pid in processes_in(inode)] == []
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True, timeout=10)
    bench.assert_nothing_left()


@needs_lab
def test_an_address_of_this_machine_is_refused(bench: Bench) -> None:
    settings = replace(bench.settings, address_a="127.0.0.1/8", address_b="127.0.0.2/8")
    with pytest.raises(LabError) as refused:
        lab.up(settings)
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == ("address_a", "address_taken")
    bench.assert_nothing_left()


@needs_lab
def test_a_folder_of_somebody_else_is_left_alone(bench: Bench) -> None:
    folder = bench.settings.folder
    folder.mkdir()
    (folder / "data").write_text("precious")
    for call in (lab.up, lab.down, lab.status):
        with pytest.raises(LabError) as refused:
            call(bench.settings)
        assert refused.value.problems[0].code == "folder_taken"
    assert (folder / "data").read_text() == "precious"
    shutil.rmtree(folder)


@needs_lab
def test_an_empty_folder_is_used_and_kept(bench: Bench) -> None:
    bench.settings.folder.mkdir()
    bench.up()
    lab.down(bench.settings)
    assert list(bench.settings.folder.iterdir()) == []
    bench.settings.folder.rmdir()
    bench.assert_nothing_left()


@needs_lab
def test_down_of_nothing_is_fine(bench: Bench) -> None:
    lab.down(bench.settings)
    bench.assert_nothing_left()


@needs_lab
def test_libvirts_refusal_is_passed_on(bench: Bench) -> None:
    bench.up()
    lab.define_vm(bench.settings, small_vm(), start=False)
    with pytest.raises(LabError, match="not running"):
        lab.virsh(lab.status(bench.settings).hosts[0].uri, "suspend", "vmtune-demo")
    running = lab.define_vm(bench.settings, small_vm(), start=True)
    wait_for(lambda: bool(passes(running.serial)), "the guest's first pass")
    with pytest.raises(LabError, match="is running on"):
        lab.define_vm(bench.settings, small_vm(), host="b")
    assert passes(running.serial), "a running VM's log must stay"
    with pytest.raises(LabError) as refused:
        lab.define_vm(bench.settings, replace(small_vm(), name="other", listener=Path("/nowhere")))
    assert refused.value.problems[0].field == "listener"
    with pytest.raises(LabError, match="no host 'c'"):
        lab.define_vm(bench.settings, small_vm(), host="c")

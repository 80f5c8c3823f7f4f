"""A real lab with a real service beside it, for tests of the whole."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vmtune import lab
from vmtune.client.connection.errors import ClientError
from vmtune.client.connection.http import Client, Document
from vmtune.errors import LabError
from vmtune.lab.guest_serial import GuestStart, parse_serial
from vmtune.model.workload import Workload

PATIENCE_S = 60
STARTS_WITHIN_S = 180
"""How soon a program of vmtune has started, even on a busy machine."""
QEMU = lab.LabSettings().qemu
ENDED = ("completed", "failed", "cancelled", "unknown")


def why_no_lab() -> str:
    """Why no lab can be brought up here; empty when one can."""
    if os.geteuid() != 0:
        return "the lab needs root"
    for program in ("/usr/sbin/libvirtd", str(QEMU), "ip", "gcc", "make"):
        if shutil.which(program) is None:
            return f"{program} is not installed: run vmtune/lab/bootstrap.sh"
    probe = subprocess.run(
        ["unshare", "--net", "--mount", "true"], capture_output=True, timeout=10, check=False
    )
    return "this root cannot make namespaces" if probe.returncode else ""


def wait_for(condition: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    """Wait until *condition* holds; the test fails when it does not."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"still waiting for {what}"
        time.sleep(0.02)


def at_work(vm: lab.LabVm) -> bool:
    """Whether the guest has begun to write: one that still starts is easily migrated."""
    with vm.serial.open(errors="replace") as lines:
        return any(isinstance(event, GuestStart) for event in parse_serial(lines))


class Service:
    """The service as a process of its own, which tests may kill and start again.

    :param port: where it also listens by TCP, for browsers; 0 for nowhere.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.port = port
        self.client = Client(folder / "vmtune.sock")
        self.process: subprocess.Popen[bytes] | None = None
        self._log = (folder / "service.log").open("ab")
        places = ["--state-dir", str(folder), "--quiet"]
        subprocess.run(
            [sys.executable, "-m", "vmtune", "db", "upgrade", *places],
            check=True,
            timeout=STARTS_WITHIN_S,
        )

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.process = self.spawn()
        wait_for(self.answers, "the service to answer", STARTS_WITHIN_S)

    def spawn(self) -> subprocess.Popen[bytes]:
        """The process."""
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "vmtune", "serve", "--state-dir", str(self.folder)),
                *("--socket", str(self.client.socket_path), "--listen-port", str(self.port)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )

    def answers(self) -> bool:
        """Whether it is up."""
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "service.log").read_text()[-3000:]
        try:
            self.client.get("/health")
        except ClientError:
            return False
        return True

    @property
    def origin(self) -> str:
        """Where browsers find it."""
        return f"http://127.0.0.1:{self.port}"

    def revive(self) -> None:
        """Start it if it is dead."""
        if self.process is not None and self.process.poll() is not None:
            self.start()

    def kill(self) -> None:
        """As a crash would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End it politely."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)
        self._log.close()

    def said(self) -> str:
        """Its log."""
        return (self.folder / "service.log").read_text()


class Live:
    """A lab, a service that knows its hosts as a and b, and VMs on demand."""

    def __init__(self, settings: lab.LabSettings, service: Service, status: lab.LabStatus) -> None:
        self.settings = settings
        self.service = service
        self.status = status

    @property
    def client(self) -> Client:
        """The service's client."""
        return self.service.client

    def host(self, which: str) -> lab.HostStatus:
        """Host a or b of the lab, of three c."""
        return self.status.hosts["abc".index(which)]

    def profile(self, name: str, **values: Any) -> None:
        """Store a profile."""
        self.client.post("/profiles", {"name": name, "values": values})

    @contextmanager
    def vm(self, **settings: Any) -> Iterator[lab.LabVm]:
        """A VM of its own, started on host a and at work, gone from both hosts afterwards."""
        name = f"vm-{secrets.token_hex(3)}"
        fields: dict[str, Any] = {
            "memory_bytes": 128 << 20,
            "workload": Workload(region_bytes=32 << 20, idle_ms=100),
            **settings,
        }
        vm = lab.define_vm(self.settings, lab.VmSettings(name=name, **fields))
        try:
            wait_for(lambda: at_work(vm), "the guest to write")
            yield vm
        finally:
            for host in self.status.hosts:
                for command in (("destroy", name), ("undefine", name)):
                    try:
                        lab.virsh(host.uri, *command)
                    except LabError:
                        continue  # it is not here

    def migrate(self, vm: lab.LabVm, to: str, **fields: Any) -> Document:
        """Order a migration."""
        return self.client.post("/migrations", {"vm": vm.uuid, "destination": to, **fields})

    def record(self, migration: Document) -> Document:
        """The record as it is now."""
        return self.client.get(f"/migrations/{migration['id']}")

    def ended(self, migration: Document) -> Document:
        """The record once it has ended."""
        wait_for(lambda: self.record(migration)["state"] in ENDED, "the migration to end")
        return self.record(migration)

    def until_active(self, migration: Document) -> None:
        """Wait until QEMU says that it runs."""
        states = ("active", *ENDED)
        wait_for(lambda: self.record(migration)["state"] in states, "the migration to run")
        assert self.record(migration)["state"] == "active", self.record(migration)

    def states(self, vm: lab.LabVm) -> dict[str, str]:
        """On which hosts the VM is, and in which state, as libvirt says."""
        now = lab.status(self.settings)
        return {
            "abc"[i]: v.state
            for i, host in enumerate(now.hosts)
            for v in now.vms
            if v.host == host.name and v.name == vm.name
        }


def lab_settings(number: int) -> lab.LabSettings:
    """Of a lab with addresses 10.*number*.0.0/24, and names that no other lab has."""
    token = secrets.token_hex(2)
    return lab.LabSettings(
        name_a=f"vt-{token}-a",
        name_b=f"vt-{token}-b",
        address_a=f"10.{number}.0.1/24",
        address_b=f"10.{number}.0.2/24",
        folder=Path(f"/run/vt-{token}"),
    )


def add_hosts(client: Client, status: lab.LabStatus) -> None:
    """Have the service drive the lab's hosts, as a and b."""
    for name, host in zip("ab", status.hosts, strict=True):
        client.post("/hosts", {"name": name, "uri": host.uri, "peer_uri": host.peer_uri})


@contextmanager
def live(folder: Path, number: int, port: int = 0) -> Iterator[Live]:
    """A lab with addresses 10.*number*.0.0/24, and a service, which listens at *port*, too."""
    settings = lab_settings(number)
    service = Service(folder, port)
    status = lab.up(settings)
    try:
        service.start()
        add_hosts(service.client, status)
        yield Live(settings, service, status)
    finally:
        service.stop()
        lab.down(settings)

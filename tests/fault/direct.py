"""Hosts without libvirt: QEMUs in the lab's two networks, with a QMP socket each."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.hosts.live import Live, Service, at_work, wait_for
from tests.support.hosts.local_disks import LocalDisk, make_image
from tests.support.qemus.qemu import RunningQemu, installed, running
from vmtune import lab
from vmtune.lab.guest_build import build_guest
from vmtune.model.workload import Workload

_MACHINE = (
    *("-machine", "pc", "-accel", "kvm", "-cpu", "qemu64", "-m", "128"),
    *("-nodefaults", "-display", "none"),
)
_ANSWERS_WITHIN_S = 5
_DISK_BYTES = 16 << 20
DISK = "/machine/peripheral/ide0-0-0"
"""The guest's disk, by libvirt's name for it."""


class DirectLive(Live):
    """A lab of which only the networks are used.

    :param folder: with the folders of both hosts' sockets.
    """

    def __init__(
        self, settings: lab.LabSettings, service: Service, status: lab.LabStatus, folder: Path
    ) -> None:
        super().__init__(settings, service, status)
        self._folder = folder
        self._program = build_guest(folder / "guest")
        self._qemus: dict[tuple[str, str], RunningQemu] = {}

    def add_hosts(self) -> None:
        """Have the service know them."""
        addresses = {"a": self.settings.address_a, "b": self.settings.address_b}
        for name, address in addresses.items():
            (self._folder / name).mkdir()
            self.client.post("/hosts", {
                "name": name,
                "uri": f"qmp+unix://{self._folder / name}",
                "migration_address": address.partition("/")[0],
            })  # fmt: skip

    @contextmanager
    def vm(self, **settings: Any) -> Iterator[lab.LabVm]:
        """A VM of its own at work on host a, and a QEMU on host b that waits for it."""
        workload: Workload = settings["workload"]
        name, uuid = f"vm-{secrets.token_hex(3)}", uuid4()
        serial = self._folder / f"{name}.serial"
        serial.touch()
        disk = dict.fromkeys("ab", self._disk(name) if settings.get("disks") else ())
        copied: LocalDisk | None = settings.get("copied")
        if copied is not None:
            disk = {host: self._copied(host, copied) for host in "ab"}
        guest = ("-kernel", str(self._program), "-append", workload.command_line())
        waits = {"a": (), "b": ("-incoming", "defer")}
        with ExitStack() as stack:
            for host, network in (("a", self.settings.name_a), ("b", self.settings.name_b)):
                log = (
                    *("-chardev", f"file,id=log,path={serial},append=on"),
                    *("-serial", "chardev:log"),
                    *("-qmp", f"unix:{self._look(host, name)},server=on,wait=off"),
                )
                machine, within = (
                    (*_MACHINE, *guest, *disk[host], *waits[host]),
                    ("ip", "netns", "exec", network),
                )
                self._qemus[host, name] = stack.enter_context(
                    running(installed(), self._folder / host, name, uuid, machine, log, within)
                )
                stack.callback(self._qemus.pop, (host, name))
            found = lab.LabVm(name, str(uuid), "a", "", "kvm", serial)
            wait_for(lambda: at_work(found), "the guest to write")
            yield found

    @contextmanager
    def own_images(self, size_bytes: int) -> Iterator[None]:
        """Give each host a file system for its images."""
        with ExitStack() as stack:
            for host in "ab":
                at = self.images(host)
                at.mkdir()
                mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "none", str(at)]
                subprocess.run(mount, check=True, timeout=10)
                unmount = ["umount", "-l", str(at)]
                stack.callback(subprocess.run, unmount, check=True, timeout=10)
            yield

    def images(self, host: str) -> Path:
        """The folder of a host's images."""
        return self._folder / f"images-{host}"

    def image(self, host: str, disk: LocalDisk) -> Path:
        """A host's image of a disk."""
        return self.images(host) / Path(disk.path).name

    @contextmanager
    def local_disk(self, size_bytes: int, format: str, seed: str) -> Iterator[LocalDisk]:
        """A disk of host a, and an empty image as large of host b."""
        path = self.images("a") / f"{secrets.token_hex(4)}.{format}"
        disk = make_image(self._folder, str(path), size_bytes, seed)
        there = str(self.image("b", disk))
        create = ["qemu-img", "create", "-q", "-f", format, there, str(size_bytes)]
        subprocess.run(create, check=True, timeout=60)
        try:
            yield disk
        finally:
            for host in "ab":
                self.image(host, disk).unlink(missing_ok=True)

    def _copied(self, host: str, disk: LocalDisk) -> tuple[str, ...]:
        file = {"driver": "file", "node-name": "file", "filename": str(self.image(host, disk))}
        node = {"driver": disk.format, "node-name": "disk", "file": "file"}
        device = "ide-hd,id=ide0-0-0,bus=ide.0,drive=disk"
        nodes = [word for each in (file, node) for word in ("-blockdev", json.dumps(each))]
        return (*nodes, "-device", device)

    def left_of_copies(self, vm: lab.LabVm) -> list[str]:
        """What is left of copies in the QEMUs that have not ended."""
        left: list[str] = []
        for host in "ab":
            if self.qemu_pid(host, vm) is None:
                continue
            for asks, key in (("query-jobs", "id"), ("query-block-exports", "id")):
                left += [f"{each[key]} on {host}" for each in self.ask(host, vm, asks) or ()]
            nodes = self.ask(host, vm, "query-named-block-nodes", flat=True) or ()
            left += [
                f"{node['node-name']} on {host}"
                for node in nodes
                if node["node-name"].startswith("vmtune-")
            ]
        return left

    def _disk(self, name: str) -> tuple[str, ...]:
        """One as libvirt gives to a lab's VM that stops at I/O errors."""
        path = self._folder / f"{name}.raw"
        with path.open("wb") as file:
            file.truncate(_DISK_BYTES)
        node = {"driver": "file", "node-name": "disk", "filename": str(path)}
        device = "ide-hd,id=ide0-0-0,bus=ide.0,drive=disk,share-rw=on,werror=stop,rerror=stop"
        return ("-blockdev", json.dumps({**node, "cache": {"direct": True}}), "-device", device)

    def _look(self, host: str, name: str) -> Path:
        return self._folder / host / f"{name}.look"  # no driver takes it for one of its own

    def qemu_pid(self, which: str, vm: lab.LabVm) -> int | None:
        """The pid of the VM's QEMU on a host; None where it has ended."""
        qemu = self._qemus[which, vm.name]
        return qemu.pid if qemu.process.poll() is None else None

    def ask(self, which: str, vm: lab.LabVm, command: str, **arguments: object) -> Any:
        """Have another client of a host's QEMU send a command: its answer, None where it refuses
        or has ended."""
        return _answer(self._look(which, vm.name), command, arguments).get("return")

    def states(self, vm: lab.LabVm) -> dict[str, str]:
        """On which hosts it is, and in which state, as QEMU says."""
        return {
            host: _status(self._look(host, vm.name)) for host in "ab" if self.qemu_pid(host, vm)
        }


def _status(monitor: Path) -> str:
    """What query-status says; empty where QEMU has ended meanwhile."""
    answer = _answer(monitor, "query-status", {})
    return str(answer["return"]["status"]) if "return" in answer else ""


def _answer(monitor: Path, command: str, arguments: dict[str, object]) -> dict[str, Any]:
    """QEMU's answer; empty where it has ended meanwhile."""
    wanted = {"execute": command, "arguments": arguments, "id": "asked"}
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(_ANSWERS_WITHIN_S)
            one.connect(str(monitor))
            one.sendall(b'{"execute": "qmp_capabilities"}' + json.dumps(wanted).encode())
            for line in one.makefile():
                answer: dict[str, Any] = json.loads(line)
                if answer.get("id") == "asked":
                    return answer
    except OSError:
        pass
    return {}

"""Hosts without libvirt: QEMUs in the lab's two networks, with a QMP socket each."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.live import Live, Service, at_work, wait_for
from tests.support.qemu import RunningQemu, installed, running
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
        disk = self._disk(name) if settings.get("disks") else ()
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
                    (*_MACHINE, *guest, *disk, *waits[host]),
                    ("ip", "netns", "exec", network),
                )
                self._qemus[host, name] = stack.enter_context(
                    running(installed(), self._folder / host, name, uuid, machine, log, within)
                )
                stack.callback(self._qemus.pop, (host, name))
            found = lab.LabVm(name, str(uuid), "a", "", "kvm", serial)
            wait_for(lambda: at_work(found), "the guest to write")
            yield found

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

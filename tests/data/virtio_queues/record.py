"""Records what the QEMU of each unpacked release (`make lab-releases`) says of its virtio queues.

Run it from the checkout as root: ``python -m tests.data.virtio_queues.record``. It writes a file
for each, named by version.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import IO, Any

from tests.support.hosts.releases import QEMU, root_of, unpacked

HERE = Path(__file__).parent
FOLDERS = ("/machine/peripheral", "/machine/peripheral-anon")
MACHINE = (
    "-machine", "pc-i440fx-7.2,accel=tcg", "-m", "64", "-nodefaults", "-display", "none", "-S",
    "-blockdev", "null-co,node-name=disk0,size=1048576",
    "-device", "virtio-blk-pci,id=virtio-disk0,drive=disk0",
    "-blockdev", "null-co,node-name=disk1,size=1048576",
    "-device", "virtio-blk-pci-non-transitional,id=virtio-disk1,drive=disk1,queue-size=1024",
    "-blockdev", "null-co,node-name=disk2,size=1048576",
    "-device", "ide-hd,id=ide-disk2,drive=disk2",
    "-device", "virtio-scsi-pci,id=scsi0",
    "-device", "virtio-scsi-pci,id=scsi1,virtqueue_size=1024",
    "-object", "rng-random,id=random0,filename=/dev/urandom",
    "-device", "virtio-rng-pci,id=rng0,rng=random0",
    "-device", "virtio-balloon-pci,id=balloon0",
    "-device", "virtio-serial-pci,id=serial0",
    "-netdev", "hubport,id=port0,hubid=0",
    "-device", "virtio-net-pci,id=net0,netdev=port0",
)  # fmt: skip
PROPERTIES = ("queue-size", "virtqueue_size")


class Refused(Exception):
    """QEMU refused a command."""


def ask(qemu: subprocess.Popen[str], command: str, **arguments: object) -> Any:  # any JSON
    to, answers = _pipes(qemu)
    to.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    to.flush()
    while True:
        reply = json.loads(answers.readline())
        if "error" in reply:
            raise Refused(reply["error"]["desc"])
        if "return" in reply:
            return reply["return"]


def _pipes(qemu: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert qemu.stdin is not None
    assert qemu.stdout is not None
    return qemu.stdin, qemu.stdout


def record(root: Path) -> None:
    """All replies of one QEMU."""
    command = ["chroot", str(root), str(QEMU), *MACHINE, "-qmp", "stdio"]
    qemu = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with qemu:
        ask(qemu, "qmp_capabilities")
        number = ask(qemu, "query-version")["qemu"]
        lists = {folder: ask(qemu, "qom-list", path=folder) for folder in FOLDERS}
        properties, statuses = [], {}
        for folder, children in lists.items():
            for name in sorted(child["name"] for child in children if child["name"] != "type"):
                path = f"{folder}/{name}"
                for each in PROPERTIES:
                    try:
                        value = ask(qemu, "qom-get", path=path, property=each)
                    except Refused:
                        continue
                    properties.append({"path": path, "property": each, "value": value})
                backend = f"{path}/virtio-backend"
                try:
                    status = ask(qemu, "x-query-virtio-queue-status", path=backend, queue=0)
                except Refused:
                    continue
                statuses[backend] = status
        ask(qemu, "quit")
    seen = {"qom-list": lists, "qom-get": properties, "x-query-virtio-queue-status": statuses}
    version = f"{number['major']}.{number['minor']}.{number['micro']}"
    text = json.dumps(seen, indent=1, sort_keys=True)
    (HERE / f"{version}.json").write_text(f"{text}\n")


if __name__ == "__main__":
    for release in unpacked():
        record(root_of(release).resolve())

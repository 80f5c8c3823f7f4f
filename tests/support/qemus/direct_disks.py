"""QEMUs without libvirt whose disks are copied along: one with an image, and one that waits."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.hosts.live import ENDED, Service, wait_for
from tests.support.qemus.qemu import Build, RunningQemu, running
from vmtune.client.connection.http import Document

MIB = 1 << 20
SIZE = 48 * MIB
COPIED = {"copy_storage": True}
SLOWLY = {**COPIED, "max_bandwidth_bytes_per_s": 4 * MIB}
MACHINE = ("-machine", "pc", "-accel", "tcg", "-m", "64", "-nodefaults", "-display", "none")
DISK = "disk0"


def image_tool(*words: str) -> str:
    """What a tool for images says."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def machine(image: Path) -> tuple[str, ...]:
    """A machine with that disk."""
    return (
        *MACHINE,
        *("-blockdev", f"file,node-name=file0,filename={image}"),
        *("-blockdev", "qcow2,node-name=node0,file=file0"),
        *("-device", f"virtio-blk-pci,id={DISK},drive=node0"),
    )


class Pair:
    """A QEMU with an image, and one that waits with an empty one."""

    def __init__(self, service: Service, folder: Path, vm: str) -> None:
        self.client, self.vm = service.client, vm
        self.images = [folder / f"{side}.qcow2" for side in "ab"]
        self.names = [f"{side}-{secrets.token_hex(2)}" for side in "ab"]
        self.qemus: list[RunningQemu] = []

    def migrate(self, **values: object) -> Document:
        return self.client.post(
            "/migrations", {"vm": self.vm, "destination": self.names[1], "values": values}
        )

    def now(self, record: Document) -> Document:
        return self.client.get(f"/migrations/{record['id']}")

    def ended(self, record: Document) -> Document:
        wait_for(lambda: self.now(record)["state"] in ENDED, "the migration to end")
        return self.now(record)

    def copying(self, record: Document) -> bool:
        disks = self.now(record)["disks"]
        return bool(disks) and 0 < disks[0]["copied_bytes"] < SIZE

    def left(self) -> list[str]:
        """What is left of copies in the QEMUs, and the sockets of their servers."""
        found = [str(each) for image in self.images
                 for each in image.parent.glob("*/vmtune-nbd.sock")]  # fmt: skip
        for qemu in self.qemus:
            if qemu.process.poll() is None:
                found += _named_copies(qemu)
        return found


def _named_copies(qemu: RunningQemu) -> list[str]:
    found = [each["id"] for each in ask(qemu, "query-jobs")]
    found += [each["id"] for each in ask(qemu, "query-block-exports")]
    nodes = ask(qemu, "query-named-block-nodes", flat=True)
    found += [each["node-name"] for each in nodes]
    return [name for name in found if name.startswith("vmtune-")]


def ask(qemu: RunningQemu, command: str, **arguments: object) -> Any:
    """What QEMU answers to a monitor of the test's own."""
    with socket.socket(socket.AF_UNIX) as own:
        own.settimeout(20)
        own.connect(str(qemu.socket.with_suffix(".look")))
        lines = own.makefile("rw")
        lines.readline()
        for each in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
            lines.write(json.dumps(each))
            lines.flush()
            while "return" not in (answer := json.loads(lines.readline())):
                assert "error" not in answer, answer
        return answer["return"]


@contextmanager
def pair(
    service: Service,
    build: Build,
    folder: Path,
    same: bool = False,
    more: Sequence[Sequence[str]] = ((), ()),
    address: str = "",
    writes: Sequence[str] = (),
) -> Iterator[Pair]:
    """Both, and the service's hosts for them.

    :param same: both have the same image.
    :param more: words of the source's command line, and of the other's.
    :param writes: what qemu-io writes to the source's image besides.
    :param address: at which the other is migrated to; empty for a socket.
    """
    vm = uuid4()
    made = Pair(service, folder, str(vm))
    for image in made.images:
        image_tool("qemu-img", "create", "-q", "-f", "qcow2", str(image), str(SIZE))
    commands = ("write -P 7 0 32M", "write -P 9 40M 4M", *writes)
    image_tool(
        "qemu-io", *(word for each in commands for word in ("-c", each)), str(made.images[0])
    )
    if same:
        made.images[1] = made.images[0]
    waits = ((), ("-incoming", "defer"))
    folders = [folder / side for side in "ab"]

    def looked_at(which: int) -> tuple[str, ...]:
        look = (folders[which] / "vm.look").absolute()
        return ("-qmp", f"unix:{look},server=on,wait=off", *waits[which], *more[which])

    with (
        running(
            build, folders[0], uuid=vm, machine=machine(made.images[0]), extra=looked_at(0)
        ) as here,
        running(
            build, folders[1], uuid=vm, machine=machine(made.images[1]), extra=looked_at(1)
        ) as there,
    ):
        made.qemus = [here, there]
        for name, at in zip(made.names, folders, strict=True):
            body = {"name": name, "uri": f"qmp+unix://{at}"}
            service.client.post(
                "/hosts", body | ({"migration_address": address} if address else {})
            )
        try:
            yield made
        finally:
            service.revive()
            for name in made.names:
                service.client.delete(f"/hosts/{name}")


def arrived_whole(it: Pair) -> bool:
    """Whether the image of the one that waited, which has ended, holds what the source's did."""
    seen = image_tool(
        "qemu-io", "-r", "-U", "-c", "read -P 7 0 32M", "-c", "read -P 0 32M 8M",
        "-c", "read -P 9 40M 4M", str(it.images[1]),
    )  # fmt: skip
    return "Pattern verification failed" not in seen

"""Disks on local storage are copied along with migrations of real QEMUs without libvirt."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.live import ENDED, Service, wait_for
from tests.support.qemu import Build, RunningQemu, builds, running
from vmtune.client.connection.errors import Refused
from vmtune.client.connection.http import Document

MIB = 1 << 20
SIZE = 48 * MIB
COPIED = {"copy_storage": True}
SLOWLY = {**COPIED, "max_bandwidth_bytes_per_s": 4 * MIB}
MACHINE = ("-machine", "pc", "-accel", "tcg", "-m", "64", "-nodefaults", "-display", "none")
DISK = "disk0"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    made = Service(tmp_path_factory.mktemp("direct"))
    made.start()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(params=[pytest.param(b, id=b.label) for b in builds()])
def build(request: pytest.FixtureRequest) -> Build:
    found: Build = request.param
    if found.why_not:
        pytest.skip(found.why_not)
    return found


def image_tool(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def machine(image: Path) -> tuple[str, ...]:
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
    """By a monitor of the test's own."""
    found: list[str] = []
    with socket.socket(socket.AF_UNIX) as own:
        own.settimeout(20)
        own.connect(str(qemu.socket.with_suffix(".look")))
        lines = own.makefile("rw")
        lines.readline()

        def ask(command: str, **arguments: object) -> Any:
            lines.write(json.dumps({"execute": command, "arguments": arguments}))
            lines.flush()
            while True:
                answer = json.loads(lines.readline())
                if "return" in answer:
                    return answer["return"]

        ask("qmp_capabilities")
        found += [each["id"] for each in ask("query-jobs")]
        found += [each["id"] for each in ask("query-block-exports")]
        found += [each["node-name"] for each in ask("query-named-block-nodes", flat=True)]
    return [name for name in found if name.startswith("vmtune-")]


@contextmanager
def pair(service: Service, build: Build, folder: Path, same: bool = False) -> Iterator[Pair]:
    vm = uuid4()
    made = Pair(service, folder, str(vm))
    for image in made.images:
        image_tool("qemu-img", "create", "-q", "-f", "qcow2", str(image), str(SIZE))
    image_tool("qemu-io", "-c", "write -P 7 0 32M", "-c", "write -P 9 40M 4M", str(made.images[0]))
    if same:
        made.images[1] = made.images[0]
    waits = ((), ("-incoming", "defer"))
    folders = [folder / side for side in "ab"]

    def looked_at(which: int) -> tuple[str, ...]:
        look = (folders[which] / "vm.look").absolute()
        return ("-qmp", f"unix:{look},server=on,wait=off", *waits[which])

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
            service.client.post("/hosts", {"name": name, "uri": f"qmp+unix://{at}"})
        try:
            yield made
        finally:
            service.revive()
            for name in made.names:
                service.client.delete(f"/hosts/{name}")


def arrived_whole(it: Pair) -> bool:
    seen = image_tool(
        "qemu-io", "-r", "-U", "-c", "read -P 7 0 32M", "-c", "read -P 0 32M 8M",
        "-c", "read -P 9 40M 4M", str(it.images[1]),
    )  # fmt: skip
    return "Pattern verification failed" not in seen


def test_a_disk_is_copied(service: Service, build: Build, tmp_path: Path) -> None:
    with pair(service, build, tmp_path) as it:
        done = it.ended(it.migrate(**COPIED))
        assert (done["state"], done["problems"]) == ("completed", []), done["failure"]
        (disk,) = done["disks"]
        assert (disk["target"], disk["created"]) == (DISK, False)
        assert disk["copied_bytes"] == disk["total_bytes"] > 0
        assert {o["tunable"]: o["status"] for o in done["outcomes"]} == {
            "copy_storage": "effective"
        }
        facts = service.client.get(f"/vms/{it.vm}")
        assert (facts["host"], facts["state"]) == (it.names[1], "running")
        assert it.left() == []
        it.qemus[1].stop()
        assert arrived_whole(it)


def test_an_abort_while_disks_are_copied(service: Service, build: Build, tmp_path: Path) -> None:
    with pair(service, build, tmp_path) as it:
        record = it.migrate(**SLOWLY)
        wait_for(lambda: it.copying(record), "the copy to be under way")
        service.client.delete(f"/migrations/{record['id']}")
        done = it.ended(record)
        assert (done["state"], done["problems"]) == ("cancelled", []), done["failure"]
        facts = service.client.get(f"/vms/{it.vm}")
        assert (facts["host"], facts["state"]) == (it.names[0], "running")
        assert it.left() == []


def test_a_service_that_is_killed_while_disks_are_copied_leaves_nothing(
    service: Service, build: Build, tmp_path: Path
) -> None:
    with pair(service, build, tmp_path) as it:
        record = it.migrate(**SLOWLY)
        wait_for(lambda: it.copying(record), "the copy to be under way")
        service.kill()
        service.start()
        done = it.ended(record)
        assert done["state"] == "failed"
        facts = service.client.get(f"/vms/{it.vm}")
        assert (facts["host"], facts["state"]) == (it.names[0], "running")
        assert it.left() == []


def test_a_service_that_is_killed_while_memory_is_sent_completes(
    service: Service, build: Build, tmp_path: Path
) -> None:
    """Nobody but vmtune ends the copies at the switchover, for which the guest stands still."""
    with pair(service, build, tmp_path) as it:
        slowly = {**COPIED, "max_bandwidth_bytes_per_s": 16 * MIB, "downtime_limit_ms": 1}
        record = it.migrate(**slowly)
        wait_for(lambda: it.now(record)["state"] in ("active", *ENDED), "the memory to be sent")
        service.kill()
        service.start()
        done = it.ended(record)
        assert done["state"] == "completed", done["failure"]
        facts = service.client.get(f"/vms/{it.vm}")
        assert (facts["host"], facts["state"]) == (it.names[1], "running")
        assert it.left() == []
        it.qemus[1].stop()
        assert arrived_whole(it)


def test_a_disk_that_both_have_is_not_copied_onto_itself(service: Service, tmp_path: Path) -> None:
    build = builds()[0]
    if build.why_not:
        pytest.skip(build.why_not)
    with pair(service, build, tmp_path, same=True) as it:
        with pytest.raises(Refused) as refused:
            it.migrate(**COPIED)
        assert [problem.code for problem in refused.value.problems] == ["copy_onto_itself"]

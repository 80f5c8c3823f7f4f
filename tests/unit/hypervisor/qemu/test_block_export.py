"""An NBD export: what is done in which order, and what where QEMU refuses a part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vmtune.errors import CommandRefused, Conflict, HostUnreachable, SetupError
from vmtune.hypervisor.qemu.allowlist import check
from vmtune.hypervisor.qemu.block_export import (
    Export,
    add_export,
    list_nodes,
    make_qcow2,
    remove_export,
)

EXPORT = Export("disk0", Path("/run/x/vmtune-nbd.sock"))


class Monitor:
    """Says what it is told to, or refuses; notes what it was asked."""

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self.answers = dict(answers or {})
        self.asked: list[str] = []
        self.arguments: dict[str, Any] = {}

    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        check(command, arguments)
        self.asked.append(command)
        self.arguments[command] = arguments
        answer = self.answers.get(command, [] if command.startswith("query-") else {})
        if isinstance(answer, tuple):  # one after the other
            self.answers[command] = answer[1:] if len(answer) > 2 else answer[-1]
            return answer[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_a_node_is_exported_read_only_unless_it_is_said() -> None:
    monitor = Monitor()
    await add_export(monitor, EXPORT)
    assert monitor.asked == ["nbd-server-start", "block-export-add"]
    assert monitor.arguments["nbd-server-start"]["max-connections"] == 0
    assert monitor.arguments["block-export-add"] == {
        "type": "nbd", "id": "vmtune-export", "name": "vmtune-export", "node-name": "disk0",
        "writable": False,
    }  # fmt: skip


async def test_a_scratch_node_is_made_for_it_and_goes_where_that_fails() -> None:
    scratch = replace(EXPORT, node="vmtune-node", writable=True, scratch_bytes=1 << 20)
    monitor = Monitor()
    await add_export(monitor, scratch)
    assert monitor.asked == ["nbd-server-start", "blockdev-add", "block-export-add"]
    assert monitor.arguments["blockdev-add"]["size"] == 1 << 20
    monitor = Monitor({"block-export-add": CommandRefused("no")})
    with pytest.raises(CommandRefused):
        await add_export(monitor, scratch)
    assert monitor.asked[-2:] == ["nbd-server-stop", "blockdev-del"]


async def test_another_server_is_left_alone() -> None:
    monitor = Monitor({"nbd-server-start": CommandRefused("NBD server already running")})
    with pytest.raises(Conflict) as caught:
        await add_export(monitor, EXPORT)
    assert [p.code for p in caught.value.problems] == ["nbd_server_running"]
    assert monitor.asked == ["nbd-server-start"]


async def test_other_refusals_are_qemus_own() -> None:
    monitor = Monitor({"nbd-server-start": CommandRefused("Permission denied")})
    with pytest.raises(CommandRefused, match="Permission denied"):
        await add_export(monitor, EXPORT)


async def test_without_its_export_the_server_is_stopped() -> None:
    monitor = Monitor({"block-export-add": CommandRefused("Cannot find device='disk0'")})
    with pytest.raises(CommandRefused, match="Cannot find"):
        await add_export(monitor, EXPORT)
    assert monitor.asked[-1] == "nbd-server-stop"


async def test_an_existing_node_is_never_exported_writable() -> None:
    monitor = Monitor()
    with pytest.raises(CommandRefused, match="read-only"):
        await add_export(monitor, Export("disk0", EXPORT.socket, writable=True))
    assert "block-export-add" not in monitor.asked
    assert monitor.asked[-1] == "nbd-server-stop"


async def test_the_server_is_stopped_when_the_export_has_gone() -> None:
    gone = ([{"id": "vmtune-export"}], [{"id": "vmtune-export"}], [])
    monitor = Monitor({"query-block-exports": gone})
    await remove_export(monitor, scratch=False)
    assert monitor.asked == [
        "block-export-del", *["query-block-exports"] * 3, "nbd-server-stop",
    ]  # fmt: skip


async def test_a_server_that_exports_something_else_is_not_stopped() -> None:
    """A killed run's note may be older than somebody's backup."""
    monitor = Monitor({"query-block-exports": [{"id": "backup"}]})
    await remove_export(monitor, scratch=True)
    assert monitor.asked == ["block-export-del", "query-block-exports", "blockdev-del"]


async def test_to_remove_what_is_not_there_is_harmless() -> None:
    refused = CommandRefused("not found")
    monitor = Monitor({"block-export-del": refused, "nbd-server-stop": refused})
    await remove_export(monitor, scratch=True)
    assert monitor.asked[-2:] == ["nbd-server-stop", "blockdev-del"]
    assert monitor.arguments["blockdev-del"] == {"node-name": "vmtune-node"}


async def test_an_answer_that_makes_no_sense_is_said_to() -> None:
    monitor = Monitor({"query-block-exports": [{"no": "id"}]})
    with pytest.raises(HostUnreachable, match="its exports"):
        await remove_export(monitor, scratch=False)


async def test_an_image_that_cannot_be_made() -> None:
    job = {"id": "vmtune-create", "status": "concluded", "error": "No space left on device"}
    monitor = Monitor({"query-jobs": [job]})
    with pytest.raises(SetupError, match="No space left"):
        await make_qcow2(monitor, "vmtune-file", 1 << 20)
    assert monitor.asked[-1] == "job-dismiss"


class Devices(Monitor):
    """A QEMU with iothreads, as 10.0 answers of its disks: the properties of each."""

    def __init__(self, iothreads: int, disks: Mapping[str, Mapping[str, object]]) -> None:
        names = [*disks, "backing"]
        node = {"drv": "null-co", "ro": False, "image": {"virtual-size": 1 << 20}}
        blocks = [{"qdev": name, "device": "", "inserted": {"node-name": name}} for name in disks]
        super().__init__(
            {
                "query-named-block-nodes": [{**node, "node-name": name} for name in names],
                "query-iothreads": [{}] * iothreads,
                "query-block": [*blocks, {"qdev": "empty-drive", "device": ""}],
            }
        )
        self.disks = disks

    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        if command != "qom-get":
            return await super().execute(command, arguments)
        check(command, arguments)
        assert arguments is not None
        found = self.disks[arguments["path"]]
        if arguments["property"] not in found:
            raise CommandRefused("Property not found")
        return found[arguments["property"]]


VIRTIO = {"type": "virtio-blk-device", "iothread": "", "iothread-vq-mapping": []}
DISKS: Mapping[str, Mapping[str, object]] = {
    "main": VIRTIO,
    "older": {"type": "virtio-blk-device", "iothread": ""},
    "ide": {"type": "ide-hd"},
    "iothread": {**VIRTIO, "iothread": "/objects/iothread1"},
    "mapped": {**VIRTIO, "iothread-vq-mapping": [{"iothread": "iothread1"}]},
    "scsi": {"type": "scsi-hd"},
}


async def test_a_node_is_on_the_main_loop_where_its_disk_says_so() -> None:
    nodes = await list_nodes(Devices(2, DISKS))
    assert {node.name for node in nodes} == {*DISKS, "backing"}
    assert {node.name for node in nodes if node.on_main_loop} == {"main", "older", "ide"}


async def test_without_iothreads_every_node_is_on_the_main_loop() -> None:
    monitor = Devices(0, DISKS)
    assert all(node.on_main_loop for node in await list_nodes(monitor))
    assert "query-block" not in monitor.asked

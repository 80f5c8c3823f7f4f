"""The sizes of virtio queues, as real QEMUs say them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vmtune.errors import CommandRefused
from vmtune.hypervisor.qemu.allowlist import check
from vmtune.hypervisor.qemu.virtio_queues import virtio_queues
from vmtune.model.host.virtio_queues import VirtioQueue

RECORDED = Path(__file__).parents[3] / "data/virtio_queues"
STATUS = "x-query-virtio-queue-status"
CONFIGURED = {
    "balloon0": 128,
    "rng0": 8,
    "scsi0": 256,
    "scsi1": 1024,
    "serial0": 128,
    "virtio-disk0": 256,
    "virtio-disk1": 1024,
}


class Recorded:
    """Answers as a QEMU did, and refuses what that refused."""

    def __init__(self, version: str) -> None:
        self.seen = json.loads((RECORDED / f"{version}.json").read_text())
        self.looked_at: list[str] = []

    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        asked = dict(arguments or {})
        check(command, asked)
        if command == "qom-get":
            for row in self.seen["qom-get"]:
                if (row["path"], row["property"]) == (asked["path"], asked["property"]):
                    return row["value"]
            raise CommandRefused("Property not found")
        if command == STATUS:
            self.looked_at.append(asked["path"])
        replies = self.seen[command]
        if asked["path"] not in replies:
            raise CommandRefused("no such path")
        return replies[asked["path"]]


@pytest.mark.parametrize(("version", "always"), [("7.2.22", 0), ("10.0.13", 1024), ("11.1.3", 0)])
async def test_each_device_has_what_it_is_configured_to_have_but_in_10_0_13(
    version: str, always: int
) -> None:
    queues = await virtio_queues(Recorded(version))
    assert queues == [
        VirtioQueue(device, always or configured, configured)
        for device, configured in CONFIGURED.items()
    ]


async def test_no_queue_is_looked_at_that_another_process_may_serve() -> None:
    """QEMU asks the back end of vhost-user for a queue's state, which stops the queue."""
    monitor = Recorded("10.0.13")
    devices = monitor.seen["qom-list"]["/machine/peripheral"]
    devices.append({"name": "far0", "type": "child<vhost-user-blk-pci>"})
    devices.append({"name": "far1", "type": "child<vhost-user-scsi-pci>"})
    assert {"name": "net0", "type": "child<virtio-net-pci>"} in devices
    await virtio_queues(monitor)
    folder = "/machine/peripheral"
    assert sorted(monitor.looked_at) == [f"{folder}/{name}/virtio-backend" for name in CONFIGURED]


async def test_nothing_is_known_where_qemu_refuses_to_say() -> None:
    monitor = Recorded("7.2.22")
    monitor.seen[STATUS] = {}
    assert await virtio_queues(monitor) == []


async def test_a_device_that_has_gone_meanwhile_is_left_out() -> None:
    monitor = Recorded("10.0.13")
    monitor.seen["qom-get"] = [row for row in monitor.seen["qom-get"] if "scsi" in row["path"]]
    assert {queue.device for queue in await virtio_queues(monitor)} == (
        set(CONFIGURED) - {"virtio-disk0", "virtio-disk1"}
    )


@pytest.mark.parametrize("reply", [{}, {"vring-num": "many"}, [], None])
async def test_nothing_is_known_by_a_reply_of_another_shape(reply: Any) -> None:
    """QEMU may change it: the command's name begins with ``x-``."""
    monitor = Recorded("10.0.13")
    monitor.seen[STATUS] = dict.fromkeys(monitor.seen[STATUS], reply)
    assert await virtio_queues(monitor) == []

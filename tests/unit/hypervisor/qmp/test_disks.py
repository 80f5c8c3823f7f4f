"""The disks of QEMUs without libvirt, by what query-block says."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.simulated.fakes import VM
from tests.support.simulated.world import world
from vmtune.errors import Blocked
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qmp.disks import as_seen, read_disks
from vmtune.model.host.disks import Disk
from vmtune.model.migration.record import MigrationState


def block(path: str, qdev: str = "disk0", device: str = "", **more: Any) -> dict[str, Any]:
    image = {"filename": path, "virtual-size": 4096, "actual-size": 512}
    inserted = {"node-name": f"node-{path}", "drv": "raw", "ro": False, "image": image}
    return {"qdev": qdev, "device": device, "inserted": inserted, **more}


class Said:
    def __init__(self, *blocks: dict[str, Any]) -> None:
        self._blocks = blocks

    async def execute(self, command: str, arguments: object = None) -> Any:  # any JSON
        assert command == "query-block"
        return self._blocks


async def read(*blocks: dict[str, Any]) -> list[Disk]:
    return list((await read_disks(cast(Monitor, Said(*blocks)), None)).values())


@pytest.mark.parametrize(
    ("block", "device"),
    [
        (block("/x"), "disk"),
        (block("/x", tray_open=False), "cdrom"),
        (block("/x", "/machine/system.flash1", "pflash1"), "flash"),
        (block("/x", "/machine/virt.flash0"), "flash"),
        (block("/x", "/machine/peripheral/a.flash0/virtio-backend"), "disk"),
        (block("/x", "pc.flash0"), "disk"),
    ],
)
async def test_what_kind_of_device_it_is(block: dict[str, Any], device: str) -> None:
    (disk,) = await read(block)
    assert disk.device == device


async def test_what_waits_says_whether_it_may_write_and_how_large_it_is() -> None:
    (disk,) = await read(block("/x"))
    at = as_seen(disk)
    assert (at.writable, at.format, at.capacity_bytes, at.allocated_bytes) == (
        True, "raw", 4096, 512,
    )  # fmt: skip


async def test_disks_are_checked_also_where_none_is_copied(tmp_path: Path) -> None:
    """Whose files the fakes have nobody can see."""
    async with world(tmp_path) as it:
        it.source.blocks, it.waiting.blocks = [block("/a")], [block("/b")]
        with pytest.raises(Blocked) as refused:
            await it.migrations.start(VM, "b")
        assert [each.code for each in refused.value.problems] == ["disk_may_differ"]
        done = await it.migrate(overrides=("disk_may_differ",))
        assert done.state is MigrationState.COMPLETED

"""How qcow2 images were made, as QEMU says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from vmtune.errors import CommandRefused
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.qcow2 import with_options
from vmtune.model.host.disks import Disk, Qcow2

RAW, MADE = Disk("vda", path="/a", format="raw"), Disk("vdb", path="/b", format="qcow2")


def node(path: str, **data: object) -> dict[str, object]:
    special = {"type": "qcow2", "data": {"compat": "1.1", **data}}
    return {"image": {"filename": path, "cluster-size": 131072, "format-specific": special}}


class Said:
    def __init__(self, *nodes: Mapping[str, Any]) -> None:  # any JSON
        self.nodes = nodes
        self.asked = 0

    async def execute(self, command: str, arguments: object = None) -> Any:  # any JSON
        self.asked += 1
        if not self.nodes:
            raise CommandRefused("not now")
        return self.nodes


async def told(said: Said, *disks: Disk) -> list[Qcow2 | None]:
    return [disk.qcow2 for disk in await with_options(cast(Monitor, said), disks)]


@pytest.mark.parametrize(
    ("data", "made"),
    [
        ({}, Qcow2(131072)),
        ({"lazy-refcounts": True, "extended-l2": False}, Qcow2(131072, lazy_refcounts=True)),
        ({"extended-l2": True}, Qcow2(131072, extended_l2=True)),
        (
            {
                "compat": "0.10",
                "refcount-bits": 64,
                "compression-type": "zstd",
                "data-file": "/b.data",
                "data-file-raw": False,
            },
            Qcow2(131072, compat="0.10", refcount_bits=64, compression="zstd", external_data=True),
        ),
    ],
)
async def test_each_image_is_found_by_its_path(data: dict[str, object], made: Qcow2) -> None:
    others = {"image": {"filename": "/a", "format-specific": {"type": "file"}}}, node("/c")
    assert await told(Said(*others, node("/b", **data)), RAW, MADE) == [None, made]


async def test_what_qemu_does_not_say_is_not_known() -> None:
    assert await told(Said(), RAW, MADE) == [None, None]
    assert await told(Said(node("/c")), MADE) == [None]


async def test_nobody_is_asked_where_no_image_is_one() -> None:
    said = Said(node("/a"))
    assert await told(said, RAW) == [None]
    assert said.asked == 0

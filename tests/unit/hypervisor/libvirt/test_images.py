"""Which files are taken for images that vmtune has just created, by what libvirt says of them."""

from __future__ import annotations

import pytest

from vmtune.hypervisor.libvirt.images import is_fresh
from vmtune.model.migration.disks import CopiedDisk, fresh_qcow2_bytes

RAW = CopiedDisk("vda", "/x", intended=True, format="raw", total_bytes=1 << 30)
QCOW2 = CopiedDisk("vda", "/x", intended=True, format="qcow2", total_bytes=1 << 30)
FRESH = fresh_qcow2_bytes(1 << 30)
OVERLAY = "<backingStore><path>/base</path></backingStore>"


def volume(
    format: str, capacity: int = 1 << 30, allocation: int = 0, physical: int = 0, more: str = ""
) -> str:
    return (
        f"<volume type='file'><name>x</name><capacity unit='bytes'>{capacity}</capacity>"
        f"<allocation unit='bytes'>{allocation}</allocation>"
        f"<physical unit='bytes'>{physical}</physical>"
        f"<target><format type='{format}'/></target>{more}</volume>"
    )


@pytest.mark.parametrize(
    ("xml", "disk", "fresh"),
    [
        (volume("raw"), RAW, True),
        (volume("raw", allocation=4096), RAW, False),
        (volume("raw", capacity=10), RAW, False),
        (volume("raw"), QCOW2, False),
        (volume("qcow2", allocation=200704, physical=FRESH), QCOW2, True),
        (volume("qcow2", physical=FRESH + 65536), QCOW2, False),
        (volume("qcow2", capacity=1 << 29, physical=FRESH), QCOW2, False),
        (volume("qcow2", physical=FRESH, more=OVERLAY), QCOW2, False),
        (volume("qcow2", physical=FRESH), RAW, False),
        (volume("raw"), CopiedDisk("vda", "/x", intended=True), False),
    ],
)
def test_only_an_empty_image_of_that_format_and_size_is_fresh(
    xml: str, disk: CopiedDisk, fresh: bool
) -> None:
    assert is_fresh(xml, disk) is fresh


def test_a_fresh_qcow2_is_as_long_as_qemu_img_makes_it() -> None:
    assert fresh_qcow2_bytes(64 << 20) == 196616
    assert fresh_qcow2_bytes(3 << 40) == 245760

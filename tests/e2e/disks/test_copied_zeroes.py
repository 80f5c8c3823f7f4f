"""What an image has no data for, or only zeroes, takes no room at the destination, where the format
or the disk lets it; and its copy goes to the port that was named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.hosts.live import Live, wait_for
from tests.support.hosts.local_disks import (
    FOLDER,
    MIB,
    LocalDisk,
    make_disk,
    own_file_systems,
    remove,
    vm_on,
    wrong_on,
)
from tests.support.hosts.machines import live_machines, said, why_no_machines
from vmtune import lab
from vmtune.client.connection.http import Document
from vmtune.model.workload import Workload

NONE = why_no_machines()
pytestmark = pytest.mark.skipif(bool(NONE), reason=NONE or "never")
CALM = Workload(region_bytes=16 * MIB, idle_ms=500, check=1)
SIZE, FULL = 64 * MIB, 33 * MIB
"""Half is random, and so is the first MiB."""
TARGET, PORT = "hda", 49300


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with live_machines() as made:
        own_file_systems(made, 1 << 30)
        yield made


def without_holes(host: lab.HostStatus, disk: LocalDisk) -> None:
    """Write all of an image, its zeroes too."""
    whole = f"{disk.path}.whole"
    convert = ("qemu-img", "convert", "-S", "0", "-O", disk.format)
    said(host, *convert, disk.path, whole)
    said(host, "mv", whole, disk.path)


def taken_bytes(host: lab.HostStatus, disk: LocalDisk) -> int:
    blocks, of = said(host, "stat", "-c", "%b %B", disk.path).split()
    return int(blocks) * int(of)


def start(live: Live, vm: lab.LabVm, to: str, **values: Any) -> Document:
    body = {"vm": vm.uuid, "destination": to, "values": {"copy_storage": "on", **values}}
    return live.client.post("/migrations", body)


def arrived(live: Live, record: Document) -> None:
    ended = live.ended(record)
    assert (ended["state"], ended["problems"]) == ("completed", []), ended["failure"]


@contextmanager
def room_left(host: lab.HostStatus, left_bytes: int) -> Iterator[None]:
    """Leave no more room to its images meanwhile, by what libvirt counts as free."""
    filler = f"{FOLDER}/filler"
    blocks, of = said(host, "stat", "-f", "-c", "%f %S", FOLDER).split()
    said(host, "fallocate", "-l", str(int(blocks) * int(of) - left_bytes), filler)
    try:
        yield
    finally:
        said(host, "rm", filler)


def codes(live: Live, vm: lab.LabVm, **values: Any) -> set[str]:
    body = {"destination": "b", "values": {"copy_storage": "on", **values}}
    return {each["code"] for each in live.client.post(f"/vms/{vm.uuid}/plan", body)["findings"]}


@pytest.mark.parametrize(
    ("format", "discard", "values", "holes"),
    [
        ("qcow2", "ignore", {}, True),
        ("raw", "unmap", {"copy_detect_zeroes_disks": TARGET}, True),
        ("raw", "unmap", {}, False),
        pytest.param("raw", "ignore", {}, False, marks=pytest.mark.long),  # as the last
    ],
)
def test_holes_stay_holes_where_the_format_or_the_disk_lets_them(
    live: Live, format: str, discard: str, values: dict[str, str], holes: bool
) -> None:
    a, b = live.status.hosts
    disk = make_disk(live, SIZE, format, f"holes {format}")
    assert taken_bytes(a, disk) <= FULL + MIB
    with vm_on(live, disk, CALM, discard=discard) as vm:
        with room_left(b, SIZE - 8 * MIB):
            assert ("copy_may_fill" if holes else "copy_no_room") in codes(live, vm, **values)
        arrived(live, start(live, vm, "b", **values))
        taken = taken_bytes(b, disk)
        assert wrong_on(live, b, vm, disk) == ""
    assert (taken <= FULL + MIB) is holes


@pytest.mark.parametrize(
    ("format", "discard"),
    [pytest.param("qcow2", "ignore", marks=pytest.mark.long), ("raw", "unmap")],
)
def test_zeroes_are_left_out_where_that_is_asked_for(live: Live, format: str, discard: str) -> None:
    a, b = live.status.hosts
    disk = make_disk(live, SIZE, format, f"zeroes {format}")
    without_holes(a, disk)
    with vm_on(live, disk, CALM, discard=discard) as vm:
        arrived(live, start(live, vm, "b"))
        remove(a, disk)
        assert taken_bytes(b, disk) >= SIZE
        assert wrong_on(live, b, vm, disk) == ""

        slowly = {"copy_bandwidth_bytes_per_s": "8MiB/s", "disks_port": PORT}
        back = start(live, vm, "a", copy_detect_zeroes_disks=TARGET, **slowly)
        taken = ("ss", "-Htn", "state", "established", "sport", "=", f":{PORT}")
        wait_for(lambda: said(a, *taken) != "", "the copy to come by that port")
        faster = {"max_bandwidth_bytes_per_s": "400MiB/s"}
        live.client.patch(f"/migrations/{back['id']}", {"values": faster})
        arrived(live, back)
        assert taken_bytes(a, disk) <= FULL + MIB
        assert wrong_on(live, a, vm, disk) == ""
        proven = {each["tunable"]: each["status"] for each in live.record(back)["outcomes"]}
        assert proven["copy_detect_zeroes_disks"] == "effective"

"""What stands against a migration because of the VM's disks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.model.preflight.disk_examples import (
    CD,
    COPIED,
    DEVICE,
    LAYERED,
    LOCAL,
    MISSING,
    ON_TOP,
    OTHER,
    SAME,
    SECOND,
    disks_at,
    disks_on,
)
from vmtune.model.host.disks import Disk, DiskAtHost, DiskRoom
from vmtune.model.migration.disks import to_copy
from vmtune.model.plan.plan import make_plan
from vmtune.model.plan.situation import Situation
from vmtune.model.versions import Version


def codes(where: Situation) -> list[str]:
    findings = make_plan(where, "a", "p", 1).findings
    return [f.code for f in findings if f.code.startswith(("copy", "disk", "image"))]


@pytest.mark.parametrize(
    ("at", "disk", "values"),
    [
        (SAME, LOCAL, {}),
        (SAME, replace(LOCAL, cache="unsafe"), {}),
        (replace(SAME, used_by="other"), LOCAL, {}),
        (replace(SAME, used_by="other", in_use=True), replace(LOCAL, shareable=True), {}),
        (MISSING, LOCAL, COPIED),
        (OTHER, LAYERED, ON_TOP),
        (replace(OTHER, format="qcow2"), LOCAL, ON_TOP),
        (replace(OTHER, format="raw"), replace(LOCAL, format="vmdk"), ON_TOP),
        (replace(OTHER, writable=False), CD, {}),
        (replace(MISSING, free_bytes=200), LOCAL, COPIED),
    ],
)
def test_nothing_stands_against_what_is_right(
    at: DiskAtHost, disk: Disk, values: dict[str, Any]
) -> None:
    assert codes(disks_at(at, disk, **values)) == []


def test_a_device_may_be_larger_and_hold_another_format() -> None:
    larger = replace(OTHER, capacity_bytes=1 << 40, format="qcow2")
    assert codes(disks_at(larger, DEVICE, **COPIED, copy_disks="vda")) == ["copy_overwrites"]


def test_images_of_two_file_systems_do_not_share_room() -> None:
    here = replace(MISSING, free_bytes=250)
    there = replace(here, file_system="2")
    assert codes(disks_on((LOCAL, here), (SECOND, there), **COPIED)) == []
    assert codes(disks_on((LOCAL, here), (SECOND, here), **COPIED)) == ["copy_may_fill"]


def test_what_other_copies_will_take_is_not_free() -> None:
    promised = replace(MISSING, free_bytes=250, promised_bytes=100)
    assert codes(disks_at(promised, **COPIED)) == ["copy_may_fill"]
    assert codes(disks_at(replace(promised, promised_bytes=151), **COPIED)) == ["copy_no_room"]
    assert codes(disks_at(replace(promised, promised_bytes=50), **COPIED)) == []


@pytest.mark.parametrize(
    ("disk", "zeroes", "found"),
    [
        (replace(LOCAL, format="raw"), "vda", ["copy_no_room"]),
        (replace(LOCAL, format="raw", discard="ignore"), "vda", ["copy_no_room"]),
        (replace(LOCAL, format="raw", discard="unmap"), "", ["copy_no_room"]),
        (replace(LOCAL, format="raw", discard="unmap"), "vda", ["copy_may_fill"]),
        (LOCAL, "", ["copy_may_fill"]),
        (replace(LOCAL, format="raw", capacity_bytes=None), "", []),
    ],
)
def test_a_raw_image_takes_all_of_its_room_where_its_disk_keeps_no_holes(
    disk: Disk, zeroes: str, found: list[str]
) -> None:
    small = replace(MISSING, free_bytes=150)
    values = {**COPIED, **({"copy_detect_zeroes_disks": zeroes} if zeroes else {})}
    assert codes(disks_at(small, disk, **values)) == found
    promised = to_copy((disk,))[0].needed_bytes  # which may be more than it will take
    assert promised == (200 if disk.format == "raw" and disk.capacity_bytes else 100)


def test_local_disks_are_those_that_are_seen_not_to_be_shared() -> None:
    unseen = replace(OTHER, identity="")
    pairs = ((LOCAL, SAME), (SECOND, MISSING), (replace(SECOND, target="vdc"), unseen), (CD, OTHER))
    plan = make_plan(disks_on(*pairs), "a", "p", 1)
    assert [disk.target for disk in plan.local_disks] == ["vdb"]
    differs = make_plan(disks_at(OTHER), "a", "p", 1)
    assert [disk.target for disk in differs.local_disks] == ["vda"]


def test_the_finding_about_room_names_all_disks_and_sums_them_up() -> None:
    small = replace(MISSING, free_bytes=150)
    plan = make_plan(disks_on((LOCAL, small), (SECOND, small), **COPIED), "a", "p", 1)
    (finding,) = [f for f in plan.findings if f.code == "copy_no_room"]
    assert finding.evidence["needed_bytes"] == 200
    assert finding.evidence["target"] == "vda, vdb"


@pytest.mark.parametrize(
    ("name", "since"),
    [("copy_detect_zeroes_disks", Version(10, 9)), ("copy_target_zero_disks", Version(12, 2))],
)
def test_what_a_libvirt_is_too_old_for_is_refused(name: str, since: Version) -> None:
    """QEMU itself has no setting for it: nothing goes through the monitor instead."""
    values = {**COPIED, name: "vda"}
    for version in (Version(9), Version(since[0], since[1] - 1), since, Version(13)):
        here = disks_at(MISSING, **values)
        there = here.destination
        assert there is not None
        for source, destination in ((version, since), (since, version)):
            where = replace(
                here,
                host=replace(here.host, libvirt=source),
                destination=replace(there, host=replace(there.host, libvirt=destination)),
            )
            found = make_plan(where, "a", "p", 1).findings
            refused = [f.code for f in found if f.tunable == name]
            assert refused == (["needs_newer_libvirt"] if version < since else [])


def test_the_room_that_images_take_is_told_by_file_system() -> None:
    unknown = replace(MISSING, file_system="")
    where = disks_on((LOCAL, MISSING), (SECOND, MISSING), **COPIED)
    one = DiskRoom("1", 200, 1 << 40, folders=("/",))
    assert make_plan(where, "a", "p", 1).disk_room == (one,)
    where = disks_on((replace(LOCAL, path="/i/x"), unknown), (SECOND, MISSING), **COPIED)
    rooms = {room.where: room.needed_bytes for room in make_plan(where, "a", "p", 1).disk_room}
    assert rooms == {"/i": 100, "1": 100}
    assert make_plan(disks_at(MISSING), "a", "p", 1).disk_room == ()
    nobody_says = disks_at(replace(MISSING, free_bytes=None), **COPIED)
    assert make_plan(nobody_says, "a", "p", 1).disk_room == ()

"""What stands against a migration because of the VM's disks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.model.preflight.disk_examples import (
    CD,
    COPIED,
    DEVICE,
    DISK_EXAMPLES,
    LAYERED,
    LOCAL,
    MISSING,
    ON_TOP,
    OTHER,
    SAME,
    SECOND,
    UNIT,
    UNSEEN,
    direct_at,
    direct_on,
    disks_at,
    disks_on,
)
from vmtune.model.findings.table import FINDINGS, Lifted, Severity
from vmtune.model.host.disks import DISK_NOT_SEEN, Disk, DiskAtHost, DiskKind, DiskRoom, Qcow2
from vmtune.model.migration.disks import to_copy
from vmtune.model.plan.plan import Plan, make_plan
from vmtune.model.plan.situation import Situation
from vmtune.model.tunables.rows.storage import CHOOSES_DISKS
from vmtune.model.versions import Version


def planned(where: Situation) -> Plan:
    return make_plan(where, "a", "p", 1)


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
        (
            replace(MISSING, free_bytes=200),
            replace(LOCAL, qcow2=Qcow2(1 << 20, compat="0.10")),
            COPIED,
        ),
        (UNSEEN, UNIT, {}),
        (replace(OTHER, free_bytes=200), LAYERED, ON_TOP),
        (replace(OTHER, format="qcow2"), replace(LOCAL, encrypted=True), ON_TOP),
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


@pytest.mark.parametrize(
    "where",
    [
        direct_at(SAME),
        direct_on(LOCAL, there={"named-otherwise": SAME}),
        direct_at(OTHER, CD),
        direct_at(OTHER, replace(LOCAL, device="flash")),
        direct_at(OTHER, Disk("null", DiskKind.OTHER)),
        direct_at(OTHER, **COPIED),
        direct_at(replace(OTHER, format="raw"), **COPIED),
        direct_on(LOCAL, SECOND, there={"vda": OTHER, "vdb": SAME}, **COPIED, copy_disks="vda"),
    ],
)
def test_nothing_stands_against_what_is_right_without_libvirt(where: Situation) -> None:
    assert codes(where) == []


def test_without_libvirt_disks_that_are_not_copied_are_checked_as_well() -> None:
    two = {"vda": OTHER, "vdb": replace(OTHER, identity="device:3")}
    assert codes(direct_on(LOCAL, SECOND, there=two)) == ["disk_differs"]
    assert codes(direct_on(LOCAL, SECOND, there=two, **COPIED, copy_disks="vda")) == [
        "disk_differs"
    ]
    swapped = {"vda": OTHER, "vdb": SAME}
    there = replace(SECOND, identity="device:2")
    assert codes(direct_on(LOCAL, there, there=swapped)) == ["disk_differs"]


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", True),
        ("/dev/disk/by-id/wwn-0x600140512345678901234567890abcde-part2", True),
        ("/dev/disk/by-id/scsi-3600140512345678901234567890abcde", True),
        ("/dev/disk/by-id/nvme-eui.0025388b710116a1", True),
        ("/dev/disk/by-id/dm-uuid-mpath-3600140512345678901234567890abcde", True),
        ("/dev/disk/by-path/ip-10.0.0.9:3260-iscsi-iqn.2026-01.example:vm-lun-3", True),
        ("/dev/mapper/3600140512345678901234567890abcde", True),
        ("/dev/mapper/3600140512345678901234567890abcdep1", True),
        ("/dev/mapper/mpatha", False),
        ("/dev/mapper/vg-vm1", False),
        ("/dev/vg/vm1", False),
        ("/dev/sda", False),
        ("/dev/disk/by-id/virtio-vm1", False),
        ("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4/../../sda", False),
        ("/dev/disk/by-path/pci-0000:00:1f.2-ata-1", False),
        ("/srv/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", False),
    ],
)
def test_a_path_that_names_one_unit_of_storage_is_the_same_on_all_hosts(
    path: str, is_one: bool
) -> None:
    disk = replace(DEVICE, path=path)
    assert disk.names_unit is is_one
    assert UNSEEN.is_same(disk) is (True if is_one else None)
    assert MISSING.is_same(disk) is False
    found = codes(disks_at(DISK_NOT_SEEN, disk))
    assert found == (["disks_not_seen"] if is_one else ["disk_may_differ"])


def test_an_override_never_drops_the_copy() -> None:
    """The VM would go without its disk, and its guest run on with what is there."""
    plan = planned(disks_at(OTHER, **COPIED))
    assert [f.code for f in plan.blockers(frozenset({"copy_target_exists"}))] == [
        "copy_target_exists"
    ]
    looked = (
        ("copy_may_overwrite", disks_at(DISK_NOT_SEEN, DEVICE, **COPIED)),
        ("copy_may_overwrite", disks_at(DISK_NOT_SEEN, **ON_TOP)),
        ("copy_may_be_onto_itself", disks_at(UNSEEN, **ON_TOP)),
        ("copy_may_be_onto_itself", direct_at(UNSEEN, **COPIED)),
        ("copy_no_room", disks_at(replace(MISSING, free_bytes=1), **COPIED)),
    )
    for code, where in looked:
        plan = planned(where)
        assert [f.code for f in plan.blockers()] == [code]
        assert plan.blockers(frozenset({code})) == ()
        assert plan.migrate_values() == where.values
        assert [disk.target for disk in plan.disks] == ["vda"]
        (name,) = where.values
        assert plan.reason_against(name) == ""


def test_which_disks_are_copied_cannot_be_overridden_by_any_code() -> None:
    where = disks_at(MISSING, **COPIED, copy_disks="vdz")
    for overrides in (frozenset({"no_such_disk"}), frozenset(FINDINGS)):
        assert "no_such_disk" in [f.code for f in planned(where).blockers(overrides)]
    zero = disks_at(MISSING, **COPIED, copy_detect_zeroes_disks="vdz")
    plan = planned(zero)
    assert plan.blockers(frozenset({"no_such_disk"})) == ()
    assert plan.migrate_values() == COPIED, "without what says nothing of which are copied"


@pytest.mark.parametrize(("code", "tunable", "where"), DISK_EXAMPLES)
def test_what_goes_on_copies_all_and_else_nothing_goes_on(
    code: str, tunable: str, where: Situation
) -> None:
    plan = planned(where)
    if plan.blockers(frozenset(FINDINGS)):
        return
    switches = [name for name in CHOOSES_DISKS if name in where.values]
    assert [name for name in switches if name not in plan.migrate_values()] == []


def test_codes_that_cannot_be_overridden_are_blockers() -> None:
    final = [kind for kind in FINDINGS.values() if kind.lifted is not Lifted.LEAVES_OUT]
    assert {kind.severity for kind in final} == {Severity.BLOCKER}


def test_an_image_that_is_there_has_some_of_the_room_already() -> None:
    small = replace(OTHER, free_bytes=99)
    assert codes(disks_at(small, LAYERED, **ON_TOP)) == ["copy_no_room"]
    holds = replace(small, allocated_bytes=1)
    assert codes(disks_at(holds, LAYERED, **ON_TOP)) == ["copy_may_fill"]
    (room,) = planned(disks_at(holds, LAYERED, **ON_TOP)).disk_room
    assert room.needed_bytes == 99


def test_all_that_an_image_loses_is_named() -> None:
    made = Qcow2(refcount_bits=64, compression="zstd", external_data=True)
    plan = planned(disks_at(MISSING, replace(LOCAL, qcow2=made), **COPIED))
    (finding,) = plan.findings
    assert finding.evidence["options"] == (
        "refcounts of 64 bits, zstd compression, an external data file"
    )

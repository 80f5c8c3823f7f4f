"""How far the copies of disks are, by what QEMU said at times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vmtune.model.host.disks import Disk, DiskKind
from vmtune.model.migration.disks import (
    CopiedDisk,
    Mirrored,
    arrived,
    caught_up_ms,
    progressed,
    to_copy,
)

SIZES = st.integers(min_value=0, max_value=1 << 44)


@st.composite
def mirrors(draw: st.DrawFn) -> Mirrored:
    total = draw(SIZES)
    return Mirrored(total, draw(st.integers(0, total)), draw(st.booleans()))


@given(st.lists(st.one_of(st.none(), mirrors()), max_size=20))
def test_a_copy_never_goes_back(seen: list[Mirrored | None]) -> None:
    disks: tuple[CopiedDisk, ...] = to_copy((Disk("vda", path="/x", capacity_bytes=5),))
    for at_ms, mirror in enumerate(seen):
        before = disks[0]
        disks = progressed(disks, {} if mirror is None else {"vda": mirror}, at_ms)
        assert disks[0].copied_bytes >= before.copied_bytes
        if before.ready_ms is not None:
            assert disks[0].ready_ms == before.ready_ms
        elif mirror is not None and mirror.ready:
            assert disks[0].ready_ms == at_ms
    (end,) = arrived(disks)
    assert end.copied_bytes == end.total_bytes
    assert end.ready_ms == disks[0].ready_ms


def test_what_the_guest_writes_meanwhile_is_added() -> None:
    (disk,) = progressed(
        (CopiedDisk("vda", "/x", total_bytes=9),), {"vda": Mirrored(8, 4, False)}, 1
    )
    assert (disk.total_bytes, disk.copied_bytes) == (8, 4)
    (disk,) = progressed((disk,), {"vda": Mirrored(10, 8, False)}, 2)
    assert (disk.total_bytes, disk.copied_bytes, disk.ready_ms) == (10, 8, None)


def test_libvirt_copies_what_is_written_to_by_one_vm() -> None:
    disks = (
        Disk("vda", path="/x"),
        Disk("vdb", path="/y", read_only=True),
        Disk("vdc", path="/z", shareable=True),
        Disk("sda", device="cdrom"),
        Disk("vdd", DiskKind.NETWORK),
    )
    assert [disk.target for disk in disks if disk.is_copied] == ["vda", "vdd"]


def test_the_memory_is_sent_once_the_last_copy_has_caught_up() -> None:
    first, last = (CopiedDisk(n, n, ready_ms=ms) for n, ms in (("vda", 5), ("vdb", 9)))
    assert caught_up_ms((first, last)) == 9
    assert caught_up_ms((first, CopiedDisk("vdb", "/y"))) == 0
    assert caught_up_ms(()) == 0

"""A short form of the fault suite (tests/fault): tries of each fault of one service on SQLite.

``make test`` tries a few of them once, ``make test-long`` all of them twice. The others are in
test_faults_shared.py. ``make fault`` tries all of them, 20 times each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.__main__ import names_of
from tests.fault.checks import left_behind, memory, place, source_image
from tests.fault.faults import FAULTS
from tests.fault.harms import Harm, as_summary, harm_of
from tests.fault.suite import Tried, as_markdown, left_to_try, note, noted, try_often
from tests.fault.testbed import FaultTestbed, Kind, testbed
from tests.support.hosts.live import why_no_lab
from vmtune.lab.guest_serial import GuestPass

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")
TRIES = 2
SEED = 3
# Each ends or holds up something else: the service, the network, a libvirtd, the migration.
OFTEN = ("service", "link", "destination-libvirtd", "abort")
ALONE = [
    name
    for name, fault in FAULTS.items()
    if fault.kind in (Kind.SQLITE, Kind.SMALL_DISK) and not (fault.postcopy or fault.slow)
]


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultTestbed]:
    # On the small disk all of them can be brought about.
    with testbed(Kind.SMALL_DISK, tmp_path_factory.mktemp("faults"), number=63) as made:
        yield made


@pytest.mark.parametrize("name", OFTEN)
def test_nothing_is_lost_in_one_try(it: FaultTestbed, name: str) -> None:
    (one,) = try_often(it, name, [1], SEED)
    assert one.wrong == ()


@pytest.mark.long
@pytest.mark.parametrize("name", ALONE)
def test_nothing_is_lost(it: FaultTestbed, name: str) -> None:
    tried = try_often(it, name, range(1, TRIES + 1), SEED)
    assert [one.wrong for one in tried] == [()] * TRIES


def test_what_libvirt_does_not_restore_in_post_copy_is_restored(it: FaultTestbed) -> None:
    """Ended on the destination, it completes the migration when it is there again, and leaves the
    capabilities of post-copy on."""
    (one,) = try_often(it, "postcopy-destination-libvirtd", [1], SEED)
    assert (one.state, one.wrong) == ("completed", ())


def test_every_fault_has_a_ground_and_a_name() -> None:
    assert len(FAULTS) == 60
    assert len({fault.name for fault in FAULTS.values()}) == len(FAULTS)
    assert {fault.kind for fault in FAULTS.values()} == set(Kind)
    assert set(OFTEN) <= FAULTS.keys()


@pytest.mark.parametrize(
    ("state", "running", "dead", "wrong"),
    [
        ("completed", ["b"], (), []),
        ("failed", ["a"], (), []),
        ("failed", [], ("failed",), []),
        ("completed", ["a"], (), ["it is completed, and runs on a"]),
        ("failed", ["b"], (), ["it is failed, and runs on b"]),
        ("completed", ["a", "b"], (), ["the VM runs on two hosts"]),
        ("failed", [], (), ["the VM runs on no host, and it is failed"]),
        ("completed", [], ("failed",), ["the VM runs on no host, and it is completed"]),
    ],
)
def test_a_vm_in_a_wrong_place_is_seen(
    state: str, running: list[str], dead: tuple[str, ...], wrong: list[str]
) -> None:
    assert place({"state": state}, running, dead) == wrong


@pytest.mark.parametrize(
    ("state", "image", "removes", "there", "wrong"),
    [
        ("completed", "kept", False, True, []),
        ("completed", "removed", True, False, []),
        ("completed", "unknown", True, False, []),
        ("failed", "kept", True, True, []),
        ("unknown", "kept", True, True, []),
        ("completed", "kept", False, False, ["the source's image is gone"]),
        ("failed", "removed", True, False, ["the source's image is gone"]),
        ("unknown", "removing", True, False, ["the source's image is gone"]),
        ("completed", "removing", True, False,
         ["the source's image is removed, and its record says removing"]),
        ("completed", "kept", True, True,
         ["the source's image is there, and the record does not say why"]),
    ],
)  # fmt: skip
def test_a_source_image_that_is_gone_for_no_reason_is_seen(
    state: str, image: str, removes: bool, there: bool, wrong: list[str]
) -> None:
    record = {"state": state, "disks": [{"source_image": image}], "problems": []}
    assert source_image(record, removes, there) == wrong


def test_a_setting_that_stayed_behind_is_seen() -> None:
    before = {"multifd": False, "downtime_limit_ms": 300}
    assert left_behind(before, dict(before), "a") == []
    assert left_behind(before, {"multifd": True, "downtime_limit_ms": 300}, "a") == [
        "multifd is True on a, and was False"
    ]
    assert left_behind(before, {"multifd": False}, "b") == [
        "downtime_limit_ms is None on b, and was 300"
    ]


def a_pass(worker: int, number: int, wrong: int | None) -> GuestPass:
    return GuestPass(worker, number, number * 1000, 10, 1, 10, wrong)


def test_memory_that_is_wrong_or_not_looked_at_is_seen() -> None:
    before = [a_pass(worker, number, 0) for number in (1, 2, 3) for worker in (0, 1)]
    assert memory([], 3) == ["the guest has not gone over its memory since"]
    begun = [*before, a_pass(0, 5, 0), a_pass(1, 4, 0)]
    assert memory(begun, 3) == ["the guest has not gone over its memory since"]
    assert memory([*begun, a_pass(1, 5, 0)], 3) == []
    assert memory([*begun, a_pass(1, 5, 7)], 3) == [
        "7 words of the guest's memory are not what it wrote"
    ]
    assert memory([*begun, a_pass(1, 5, None)], 3) == ["the guest does not check its memory"]


@pytest.mark.parametrize(
    ("wrong", "harm"),
    [
        ("the VM runs on two hosts", Harm.DOUBLED),
        ("the VM runs on no host, and it is failed", Harm.LOST),
        ("it is failed, and runs on b", Harm.RECORD),
        ("the source's image is gone", Harm.LOST),
        ("the image at the destination is gone", Harm.LOST),
        ("the disk on b: what the guest does not write has changed", Harm.LOST),
        ("the source's image is kept, and its record says removed", Harm.RECORD),
        ("an image stays at the destination, and the record does not say so", Harm.RECORD),
        ("7 words of the guest's memory are not what it wrote", Harm.LOST),
        ("2 records of one migration", Harm.RECORD),
        ("multifd is True on a, and was False", Harm.LEFT),
        ("vmtune-mirror-0 on a is left", Harm.LEFT),
        ("TimeoutError: the lab does not answer", Harm.LOST),
    ],
)
def test_each_harm_has_its_kind(wrong: str, harm: Harm) -> None:
    assert harm_of(wrong) is harm


def test_the_summary_counts_tries_by_harm() -> None:
    tries = [
        Tried("direct-disks-link", 1, 1, 0.5, "", "completed", 9.5),
        Tried("direct-disks-link", 1, 2, 0.5, "", "failed", 9.5, (
            "the VM runs on two hosts", "its samples are not in order", "samples are lost",
        )),
        Tried("link", 1, 1, 0.5, "", "failed", 9.5, ("the source's image is gone",)),
    ]  # fmt: skip
    assert list(as_summary(tries)) == [
        "link: 1 try, 1 lost, 0 doubled, 0 wrong records, 0 left behind",
        "direct-disks-link: 2 tries, 0 lost, 1 doubled, 1 wrong records, 0 left behind",
        "all: 3 tries, 1 lost, 1 doubled, 1 wrong records, 0 left behind",
    ]


def test_a_kind_of_faults_is_tried_as_a_whole() -> None:
    direct = [name for name in FAULTS if name.startswith("direct-disks-")]
    assert names_of((), ("direct-disks",)) == direct
    assert names_of(("link",), ("direct-disks",)) == ["link", *direct]
    assert names_of((), ()) == list(FAULTS)


def test_a_try_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "tries.jsonl"
    whole = Tried("link", 1, 1, 0.5, "", "completed", 9.5)
    note(file, whole)
    with file.open("a") as lines:
        lines.write('{"fault": "li')
    assert noted(file) == [whole]
    note(file, whole)
    assert noted(file) == [whole, whole]


def test_tries_add_up_from_run_to_run(tmp_path: Path) -> None:
    file = tmp_path / "tries.json"
    assert noted(file) == []
    some = [
        Tried("link", 1, 1, 0.5, "for 2.0 s", "completed", 9.5),
        Tried("link", 1, 3, 1.5, "for 1.0 s", "failed", 8.5, ("samples are lost",)),
        Tried("link", 2, 2, 1.0, "", "completed", 8.0),
    ]
    for one in some:
        note(file, one)
    assert noted(file) == some
    assert left_to_try(some, "link", 1, 4) == [2, 4]
    assert left_to_try(some, "clock", 1, 2) == [1, 2]
    assert list(as_markdown(some))[2:] == [
        "| link down and up | one service on SQLite | 3 | 2 completed, 1 failed | NO, in 1 |"
    ]

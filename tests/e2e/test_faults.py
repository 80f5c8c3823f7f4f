"""A short form of the fault suite (tests/fault): two faults that no other test here brings about.

``make fault`` tries all of them, 20 times each.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fault.checks import left_behind, place
from tests.fault.faults import FAULTS
from tests.fault.ground import Ground, Kind, ground
from tests.fault.suite import try_often
from tests.support.live import why_no_lab

NO_LAB = why_no_lab()
pytestmark = [
    pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never"),
    pytest.mark.timeout(300),
]
TRIES = 2
SEED = 3


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with ground(Kind.SQLITE, tmp_path_factory.mktemp("faults"), number=63) as made:
        yield made


@pytest.mark.parametrize("name", ["clock", "link"])
def test_nothing_is_lost(it: Ground, name: str) -> None:
    tried = try_often(it, FAULTS[name], TRIES, SEED)
    assert tried.wrong == {}
    assert tried.tries == TRIES


def test_every_fault_has_a_ground_and_a_name() -> None:
    assert len(FAULTS) == 12
    assert len({fault.name for fault in FAULTS.values()}) == len(FAULTS)
    assert {fault.kind for fault in FAULTS.values()} == set(Kind)


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


def test_a_setting_that_stayed_behind_is_seen() -> None:
    before = {"multifd": False, "downtime_limit_ms": 300}
    assert left_behind(before, dict(before), "a") == []
    assert left_behind(before, {"multifd": True, "downtime_limit_ms": 300}, "a") == [
        "multifd is True on a, and was False"
    ]
    assert left_behind(before, {"multifd": False}, "b") == [
        "downtime_limit_ms is None on b, and was 300"
    ]

"""The counters of sends: found, shown by an object, and put in order by iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.simulated.patched_qemu import OBJECT_ID, SENDS, TYPE, PatchedQemu
from vmtune.bench.migration.send_counters import MEMBERS, SendCounters, SendLog, counts_of
from vmtune.bench.model.runs.send_record import SendCounts
from vmtune.errors import CommandRefused
from vmtune.testing.fake.qemu import FakeQemu

SHOWN = SendCounts(900, 471_859_200, 190_000, 150_000, 450, 471_800_000, 449, 12, 2500)


class Asked:
    """A monitor of a fake QEMU."""

    def __init__(self, qemu: FakeQemu) -> None:
        self._qemu = qemu

    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        return self._qemu.answer(command, arguments or {})


async def test_the_object_is_made_where_there_is_none() -> None:
    qemu = PatchedQemu()
    counters = SendCounters(Asked(qemu))
    assert await counters.read() is None
    assert await counters.prepare() is True
    assert await counters.read() == SHOWN
    again = SendCounters(Asked(qemu))
    assert await again.prepare() is True  # finds it
    assert await again.read() == SHOWN
    added = [arguments for command, arguments in qemu.commands if command == "object-add"]
    assert added == [{"qom-type": TYPE, "id": OBJECT_ID}]


async def test_an_older_patch_counts_no_sends() -> None:
    class Older(PatchedQemu):
        def answer(self, command: str, arguments: Mapping[str, Any]) -> Any:
            found = super().answer(command, arguments)
            if command == "qom-list-properties":
                return [row for row in found if row["name"] != "sends"]
            return found

    counters = SendCounters(Asked(Older()))
    assert await counters.prepare() is False
    assert await counters.read() is None


async def test_an_unpatched_one_has_no_such_type() -> None:
    class Plain(PatchedQemu):
        def answer(self, command: str, arguments: Mapping[str, Any]) -> Any:
            if command == "qom-list-properties":
                raise CommandRefused("Class not found")
            return super().answer(command, arguments)

    assert await SendCounters(Asked(Plain())).prepare() is False


def test_each_member_has_its_figure() -> None:
    assert list(MEMBERS.values()) == list(SENDS)
    assert counts_of(SENDS) == SHOWN


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), max_size=20))
def test_iterations_add_up_to_all(steps: list[tuple[int, int]]) -> None:
    log, iteration, sends = SendLog(SendCounts(7)), 0, 7
    for more, sent in steps:
        iteration, sends = iteration + more, sends + sent
        log.add(iteration, 1.0, SendCounts(sends))
    record = log.record()
    assert record.total.sends == sends - 7
    assert sum(each.counts.sends for each in record.iterations) == sends - 7
    numbers = [each.iteration for each in record.iterations]
    assert numbers == sorted(set(numbers))


def test_a_late_look_at_an_earlier_iteration_counts_for_the_newest() -> None:
    log = SendLog(SendCounts())
    log.add(2, 1.0, SendCounts(5))
    log.add(1, 2.0, SendCounts(9))
    assert [(each.iteration, each.counts.sends) for each in log.record().iterations] == [(2, 9)]


@pytest.mark.parametrize("name", SendCounts.__dataclass_fields__)
def test_no_figure_is_ever_negative(name: str) -> None:
    assert getattr(SendCounts().since(SendCounts(**{name: 3})), name) == 0

"""Where VMs go: every one is placed or has its reason, and no host is filled beyond its room."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples.facts import direct_host, host
from vmtune.model.evacuation.evacuation import (
    EvacuationState,
    EvacuationVm,
    EvacuationVmState,
    Order,
    Tally,
    end_of,
    migration_id,
    ordinal,
    priority_of,
)
from vmtune.model.evacuation.placement import KEPT_FREE, Candidate, place, room_of, why_not

NAMES = "bcdef"


def leaving(number: int, size: int = 1, priority: int = 0) -> EvacuationVm:
    return EvacuationVm(UUID(int=number), f"vm{number}", size, priority, EvacuationVmState.WAITING)


vms = st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 3)), max_size=12).map(
    lambda made: [leaving(n, size, p) for n, (size, p) in enumerate(made, 1)]
)
rooms = st.dictionaries(st.sampled_from(NAMES), st.none() | st.integers(0, 20))
pairs = st.sets(st.tuples(st.integers(1, 12), st.sampled_from(NAMES)), max_size=20)


@given(vms, rooms, pairs)
def test_every_vm_is_placed_where_there_is_room_or_has_a_reason(
    leaving_vms: list[EvacuationVm],
    room: dict[str, int | None],
    against: set[tuple[int, str]],
) -> None:
    hosts = [Candidate(name, size) for name, size in room.items()]
    refused = {(UUID(int=number), name): "no" for number, name in against}
    found = place(leaving_vms, hosts, refused)
    assert set(found.placed) | set(found.unplaced) == {vm.vm for vm in leaving_vms}
    assert not set(found.placed) & set(found.unplaced)
    left = dict(room)
    for vm in leaving_vms:
        name = found.placed.get(vm.vm)
        if name is None:
            continue
        assert (vm.vm, name) not in refused
        size = left[name]
        left[name] = None if size is None else size - vm.memory_bytes
    assert all(size is None or size >= 0 for size in left.values())
    for vm in leaving_vms:
        if vm.vm in found.unplaced:
            assert found.unplaced[vm.vm]
            # No host had room for it when its turn came; those placed later are smaller.
            for name, size in left.items():
                fits = size is None or size >= vm.memory_bytes
                assert (vm.vm, name) in refused or not fits
    assert place(leaving_vms[::-1], hosts[::-1], refused) == found


@given(vms, rooms)
def test_only_hosts_that_await_a_vm_get_it(
    leaving_vms: list[EvacuationVm], room: dict[str, int | None]
) -> None:
    hosts = [
        Candidate(name, size, frozenset(vm.vm for vm in leaving_vms[index::2]))
        for index, (name, size) in enumerate(room.items())
    ]
    awaited = {host.name: host.expected for host in hosts}
    for vm, name in place(leaving_vms, hosts).placed.items():
        expected = awaited[name]
        assert expected is not None and vm in expected


def test_the_load_spreads_and_the_reasons_are_told() -> None:
    found = place([leaving(n, 2) for n in range(1, 5)], [Candidate("b", 5), Candidate("c", 5)])
    assert sorted(found.placed.values()) == ["b", "b", "c", "c"]
    large = place([leaving(1, 4 << 30)], [Candidate("b", (3 << 30) + 5)], {})
    assert large.unplaced[UUID(int=1)] == "b: it needs 4 GiB, and there is room for 3 GiB"
    assert "no host" in place([leaving(1)], []).unplaced[UUID(int=1)]
    many = place([leaving(1, 9)], [Candidate(name, 1) for name in NAMES])
    assert many.unplaced[UUID(int=1)].endswith("and 2 more hosts")


def test_what_a_host_may_still_give() -> None:
    facts = host(memory_bytes=100 << 30, memory_available_bytes=20 << 30)
    kept = int((100 << 30) * KEPT_FREE)
    assert room_of(facts, 5 << 30) == (15 << 30) - kept
    assert room_of(facts, 50 << 30) == 0
    assert room_of(host(memory_available_bytes=None), 0) is None


def test_which_hosts_can_take_none() -> None:
    assert why_not(host("b"), host("a")) == ""
    assert why_not(host("b", uuid="uuid-of-a"), host("a")) == "it is the same machine"
    assert why_not(direct_host("b"), host("a")) == "it is driven by qmp, not by libvirt"
    # Direct mode: several hosts may be folders of one machine.
    assert why_not(direct_host("b", uuid="u"), direct_host("a", uuid="u")) == ""


def test_the_order_is_the_one_that_was_asked_for() -> None:
    three = [leaving(1, 5, 0), leaving(2, 1, 9), leaving(3, 3, 0)]
    expected = {
        Order.PRIORITY: [2, 1, 3],
        Order.LARGEST_FIRST: [1, 3, 2],
        Order.SMALLEST_FIRST: [2, 3, 1],
    }
    assert set(expected) == set(Order)
    for order, numbers in expected.items():
        found = sorted(three, key=lambda vm: ordinal(vm, order))
        assert [vm.vm.int for vm in found] == numbers


@given(st.text(max_size=12))
def test_any_label_is_some_priority(text: str) -> None:
    assert isinstance(priority_of({"priority": text}), int)


def test_a_priority_is_a_whole_number() -> None:
    told = {"7": 7, "-3": -3, "": 0, "high": 0, "1.5": 0, "--1": 0, "²": 0, "9" * 50: 0}
    for text, value in told.items():
        assert priority_of({"priority": text}) == value
    assert priority_of({}) == 0


def test_a_migrations_id_follows_from_evacuation_and_vm() -> None:
    one, other, vm = UUID(int=1), UUID(int=2), UUID(int=3)
    assert migration_id(one, vm) == migration_id(one, vm)
    assert len({migration_id(one, vm), migration_id(other, vm), migration_id(one, one)}) == 3


def test_what_is_left_decides_how_it_ended() -> None:
    moved = Tally({EvacuationVmState.MOVED: 3, EvacuationVmState.NOT_RUNNING: 1}, 3, 3)
    assert end_of(moved) is EvacuationState.COMPLETED
    left = Tally({EvacuationVmState.MOVED: 3, EvacuationVmState.BLOCKED: 1}, 3, 3)
    assert end_of(left) is EvacuationState.INCOMPLETE
    assert (left.total, left.finished, left.left) == (4, 4, 1)

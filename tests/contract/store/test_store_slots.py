"""The queue of migrations, and evacuations, on both databases."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest

from vmtune.errors import Conflict, NotFound
from vmtune.model.access.scopes import Reach
from vmtune.model.evacuation.evacuation import EvacuationState, EvacuationVm, EvacuationVmState
from vmtune.model.findings.table import Finding
from vmtune.model.migration.admission import Limits
from vmtune.model.migration.record import Migration, MigrationState
from vmtune.storage import Store

LIMITS = Limits(2, 2, 5)


def queued(store: Store, way: str = "ab", priority: int = 0) -> Migration:
    return store.migrations.begin(
        vm=uuid4(), vm_name="vm", source=way[0], destination=way[1], priority=priority
    )


def test_a_slot_is_taken_in_turn_and_freed_by_the_end(store: Store) -> None:
    first, second, third = (queued(store) for _ in range(3))
    urgent = queued(store, priority=5)
    assert store.slots.admit(LIMITS) == (urgent.id, first.id)
    assert store.slots.admit(LIMITS) == ()
    positions = store.slots.positions([third.id, second.id, first.id], LIMITS)
    assert {id: position.ahead for id, position in positions.items()} == {second.id: 0, third.id: 1}
    assert positions[second.id].why == "2 of 2 leave a"
    assert store.slots.running([first.id, second.id]) == {first.id}
    assert store.slots.counts() == (2, 2)
    store.migrations.update(first.id, state=MigrationState.CANCELLED)
    store.migrations.update(second.id, state=MigrationState.FAILED)  # cancelled while it waited
    assert store.slots.admit(LIMITS) == (third.id,)
    assert store.slots.counts() == (0, 2)


def test_an_observed_one_has_its_slot_and_may_learn_where_it_goes(store: Store) -> None:
    seen = store.migrations.begin(
        vm=uuid4(), vm_name="vm", source="a", destination="", state=MigrationState.STARTING
    )
    assert store.slots.counts() == (0, 1)
    store.migrations.update(seen.id, destination="b")
    waits = queued(store, "cb")
    assert store.slots.admit(Limits(1, 1, 9)) == ()
    position = store.slots.positions([waits.id], Limits(1, 1, 9))[waits.id]
    assert position.why == "1 of 1 arrive on b"


def test_what_is_held_waits_until_it_is_let_go(store: Store) -> None:
    first, second = queued(store), queued(store)
    store.slots.hold([first.id], held=True)
    assert store.slots.admit(LIMITS) == (second.id,)
    store.slots.hold([first.id, second.id], held=False)
    assert store.slots.admit(LIMITS) == (first.id,)


def test_many_from_one_host_do_not_hide_others(store: Store) -> None:
    for _ in range(150):
        queued(store, "ab")
    last = queued(store, "cd")
    assert last.id in store.slots.admit(LIMITS)


def test_services_that_decide_at_once_keep_the_limits_together(url: str) -> None:
    with Store.open(url, wait_s=60) as one, Store.open(url, wait_s=60) as other:
        for number in range(40):
            queued(one, "abcde"[number % 5] + "fghij"[number // 8])
        with ThreadPoolExecutor(8) as pool:
            work = [pool.submit(s.slots.admit, LIMITS) for _ in range(8) for s in (one, other)]
            admitted = [id for each in work for id in each.result()]
        assert len(admitted) == len(set(admitted)) == LIMITS.all
        records = [one.migrations.get(id) for id in admitted]
        assert max(Counter(r.source for r in records).values()) <= LIMITS.outgoing
        assert max(Counter(r.destination for r in records).values()) <= LIMITS.incoming
        assert one.slots.counts() == (35, 5)


def leaving(
    number: int, state: EvacuationVmState = EvacuationVmState.WAITING, to: str = "b"
) -> EvacuationVm:
    finding = Finding("vm_cannot_migrate", "", {"reason": "no"})
    return EvacuationVm(
        UUID(int=number), f"vm{number}", number << 30, 0, state, to, "", (finding,), ("a_code",)
    )


def test_an_evacuation_is_kept_with_its_vms(store: Store) -> None:
    vms = [leaving(1), leaving(2, EvacuationVmState.NOT_RUNNING, ""), leaving(3)]
    made = store.evacuations.begin("a", vms, destinations=["b"], stop_after_failures=3)
    assert store.evacuations.get(made.id, "a") == made
    assert store.evacuations.vms(made.id) == tuple(vms)
    first = store.evacuations.vm_page(made.id, limit=2)
    assert [vm.name for vm in first.items] == ["vm1", "vm2"]
    rest = store.evacuations.vm_page(made.id, first.next, limit=2)
    assert [vm.name for vm in rest.items] == ["vm3"]
    assert store.evacuations.promised(["a", "b"]) == {"b": 4 << 30}
    moved = store.evacuations.note(
        made.id, UUID(int=1), EvacuationVmState.MOVED, migration=UUID(int=9)
    )
    assert (moved.destination, moved.migration) == ("b", UUID(int=9))
    tally = store.evacuations.tallies([made.id])[made.id]
    assert (tally.total, tally.finished, tally.left) == (3, 2, 0)
    assert (tally.moved_bytes, tally.total_bytes) == (1 << 30, 4 << 30)
    with pytest.raises(NotFound):
        store.evacuations.note(made.id, UUID(int=7), EvacuationVmState.MOVED)
    with pytest.raises(NotFound):
        store.evacuations.get(made.id, "b")


def test_its_states_follow_each_other_and_an_end_is_one(store: Store) -> None:
    made = store.evacuations.begin("a", [leaving(1)])
    assert store.evacuations.enter(made.id, EvacuationState.PAUSED).state is EvacuationState.PAUSED
    assert store.evacuations.unfinished()
    ended = store.evacuations.enter(made.id, EvacuationState.FAILED, "why")
    assert (ended.reason, ended.ended_at is not None) == ("why", True)
    assert store.evacuations.unfinished() == ()
    with pytest.raises(Conflict):
        store.evacuations.enter(made.id, EvacuationState.RUNNING)


def test_one_at_a_time_of_a_host_and_none_to_a_host_that_is_emptied(store: Store) -> None:
    made = store.evacuations.begin("a", [leaving(1)])
    for host, vm, code in (
        ("a", leaving(2, to="c"), "evacuating"),
        ("c", leaving(2, to="a"), "destination_evacuating"),
    ):
        with pytest.raises(Conflict) as caught:
            store.evacuations.begin(host, [vm])
        assert caught.value.problems[0].code == code
    store.evacuations.note(made.id, UUID(int=1), EvacuationVmState.REQUESTED, migration=UUID(int=9))
    assert (store.evacuations.arriving("b"), store.evacuations.arriving("a")) == (1, 0)
    store.evacuations.note(made.id, UUID(int=1), EvacuationVmState.MOVED)
    assert store.evacuations.arriving("b") == 0
    store.evacuations.add(made.id, [leaving(5), leaving(6)])
    assert [vm.name for vm in store.evacuations.vms(made.id)] == ["vm1", "vm5", "vm6"]
    store.evacuations.enter(made.id, EvacuationState.COMPLETED)
    again = store.evacuations.begin("b", [leaving(1, to="a")])
    assert [e.id for e in store.evacuations.list().items] == [again.id, made.id]
    assert [e.id for e in store.evacuations.list("a").items] == [made.id]
    assert store.evacuations.list(states=[EvacuationState.RUNNING]).items == (again,)
    assert store.evacuations.list(reach=Reach(frozenset({"a"}))).items[0].id == made.id
    page = store.evacuations.list(limit=1)
    assert [e.id for e in store.evacuations.list(after=page.next).items] == [made.id]

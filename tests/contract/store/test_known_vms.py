"""VMs as they were last seen, page by page."""

import random
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event, insert

from tests.contract.store.conftest import Clock
from vmtune.errors import InvalidInput
from vmtune.model.access.scopes import Reach
from vmtune.model.host.inventory import Host, VmSort
from vmtune.model.migration.record import MigrationState
from vmtune.model.plan.tuning_state import TuningState
from vmtune.storage import Store
from vmtune.storage.tables.core import TuningRow, VmRow

LIST = "live_vms"


def test_they_are_filtered_by_name_reach_and_all_labels(
    store: Store, host: Host, clock: Clock
) -> None:
    store.hosts.add(Host("b", "qemu:///system", "", "", clock()))
    vms = {name: uuid4() for name in ("one", "two", "three")}
    store.vms.remember_all("a", {vms["one"]: "one", vms["two"]: "two"}, clock())
    store.vms.remember(vms["three"], "three", "b", clock())
    store.vms.set_labels(vms["one"], {"tier": "db", "zone.x/y": "1"})
    store.vms.set_labels(vms["three"], {"tier": "db"})

    def names(
        *labels: tuple[str, str], name: str | None = None, hosts: frozenset[str] | None = None
    ) -> list[str]:
        reach = Reach(hosts=hosts)
        found, counts = store.known_vms.page(LIST, None, 10, name=name, labels=labels, reach=reach)
        assert counts[TuningState.UNTUNED] == sum(counts.values()) == len(found.items)
        return [vm.name for vm in found.items]

    assert store.known_vms.count() == 3
    assert names() == ["one", "three", "two"]
    assert names(name="two") == ["two"]
    assert names(hosts=frozenset({"a"})) == ["one", "two"]
    assert names(("tier", "db")) == ["one", "three"]
    assert names(("tier", "db"), hosts=frozenset({"a"})) == ["one"]
    assert names(("tier", "db"), ("zone.x/y", "1")) == ["one"]
    assert names(("tier", "web")) == []
    assert names(("absent", "")) == []


@pytest.mark.parametrize(
    ("state", "where"), [(MigrationState.COMPLETED, "b"), (MigrationState.FAILED, "a")]
)
def test_one_that_has_migrated_is_at_its_destination_before_anybody_lists_it(
    store: Store, host: Host, clock: Clock, state: MigrationState, where: str
) -> None:
    store.hosts.add(Host("b", "qemu:///system", "", "", clock()))
    vm = uuid4()
    store.vms.remember(vm, "moved", "a", clock())
    begun = store.migrations.begin(
        vm=vm, vm_name="moved", source="a", destination="b", state=MigrationState.ACTIVE
    )
    store.migrations.update(begun.id, state=state)
    assert store.vms.get(vm).host == where
    assert store.known_vms.counts([where]) == {where: 1}


def test_those_of_one_name_are_all_on_some_page(store: Store, host: Host, clock: Clock) -> None:
    uuids = {UUID(int=number) for number in (3, 1 << 100, 2)}
    store.vms.remember_all("a", dict.fromkeys(uuids, "same"), clock())
    seen: list[UUID] = []
    after = None
    for _ in uuids:
        found, _ = store.known_vms.page(LIST, after, 1)
        seen += [vm.uuid for vm in found.items]
        after = found.next
    assert after is None
    assert seen == sorted(uuids)


def test_another_lists_cursor_is_refused(store: Store, host: Host, clock: Clock) -> None:
    store.vms.remember_all("a", {uuid4(): "x", uuid4(): "y"}, clock())
    found, _ = store.known_vms.page("another", None, 1)
    assert found.next is not None
    with pytest.raises(InvalidInput):
        store.known_vms.page(LIST, found.next, 1)


def many(store: Store, clock: Clock, states: dict[TuningState, int]) -> dict[str, TuningState]:
    """So many VMs in each state, on host a; the names are in no order of the states."""
    now, uuids = clock(), [uuid4() for _ in range(sum(states.values()))]
    names = [f"vm{number:05}" for number in range(len(uuids))]
    random.Random(1).shuffle(names)
    given = [state for state, count in states.items() for _ in range(count)]
    vms = [
        {"uuid": uuid, "name": name, "host": "a", "labels": {}, "seen_at": now}
        for uuid, name in zip(uuids, names, strict=True)
    ]
    tunings = [
        {
            "vm": uuid, "state": state, "profile": "p", "revision": 1, "application": None,
            "differing": [], "as_of": now, "since": now,
        }
        for uuid, state in zip(uuids, given, strict=True)
        if state is not TuningState.UNTUNED
    ]  # fmt: skip
    with store._database.write() as session:
        session.execute(insert(VmRow), vms)
        session.execute(insert(TuningRow), tunings)
    return dict(zip(names, given, strict=True))


def test_each_state_rare_or_not_is_listed_in_order(store: Store, host: Host, clock: Clock) -> None:
    rare = {TuningState.DRIFTED: 5, TuningState.UNKNOWN: 1}
    states = {TuningState.TUNED: 60, TuningState.UNTUNED: 40, **rare}
    known = many(store, clock, states)
    for state in TuningState:
        for sort in (VmSort("name"), VmSort("-name"), VmSort("tuning_state")):
            seen: list[str] = []
            after = None
            while True:
                found, counts = store.known_vms.page(LIST, after, 4, sort=sort, tuning=state)
                seen += [vm.name for vm in found.items]
                after = found.next
                assert counts[state] == states.get(state, 0)
                if after is None:
                    break
            wanted = sorted(name for name, its in known.items() if its is state)
            assert seen == (wanted[::-1] if sort.backwards else wanted)
    found, _ = store.known_vms.page(LIST, None, 10, search="vm0000", tuning=TuningState.DRIFTED)
    assert {vm.name for vm in found.items} == {
        name for name, its in known.items() if its is TuningState.DRIFTED and name < "vm00010"
    }


def plans(store: Store, read: Callable[[], object]) -> list[str]:
    """How the database finds the rows of each query of *read*."""
    engine = store._database._engine
    asked: list[tuple[str, object]] = []

    def note(_on: object, _cursor: object, statement: str, given: object, *_: object) -> None:
        asked.append((statement, given))

    event.listen(engine, "before_cursor_execute", note)
    read()
    event.remove(engine, "before_cursor_execute", note)
    explain = "EXPLAIN QUERY PLAN" if store._database.is_local else "EXPLAIN"
    with engine.connect() as connection:
        return [
            "\n".join(str(row[-1]) for row in connection.exec_driver_sql(f"{explain} {sql}", given))
            for sql, given in asked
            if sql.startswith("SELECT")
        ]


def test_those_of_a_rare_state_are_found_without_reading_all(
    store: Store, host: Host, clock: Clock
) -> None:
    many(store, clock, {TuningState.TUNED: 10_000, TuningState.DRIFTED: 20})
    if not store._database.is_local:
        with store._database.write() as session:
            session.connection().exec_driver_sql("ANALYZE")  # which it does by itself at times
    listed = plans(store, lambda: store.known_vms.page(LIST, None, 50, tuning=TuningState.DRIFTED))
    assert "ix_tunings_state_since" in listed[-1]
    assert "SCAN vms" not in listed[-1]
    seen = plans(store, lambda: store.overview.standing(clock(), 5))
    worst = [plan for plan in seen if "ix_tunings_state_since" in plan and "vms" in plan]
    assert len(worst) == 3, seen

"""VMs as they were last seen, page by page."""

from uuid import UUID, uuid4

import pytest

from tests.contract.store.conftest import Clock
from vmtune.errors import InvalidInput
from vmtune.model.access.scopes import Reach
from vmtune.model.host.inventory import Host
from vmtune.model.migration.record import MigrationState
from vmtune.model.plan.tuning_state import TuningState
from vmtune.storage import Store

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

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID, uuid4

import pytest

from tests.contract.store.conftest import Clock
from vmtune.errors import Conflict, DuplicateName, InvalidInput, NotFound
from vmtune.model.host.inventory import Host, Vm
from vmtune.model.migration.record import MigrationState
from vmtune.model.plan.outcome import ApplicationState
from vmtune.storage import Store

VM = UUID("00000000-0000-4000-8000-00000000000a")


def test_a_host_comes_back_as_it_was_added(store: Store) -> None:
    east = timezone(timedelta(hours=5, minutes=30))
    given = Host("b.1", "qmp+unix:///run/b", "qemu+tls://b/system", "fd00::1", datetime(
        2026, 1, 2, 3, 4, 5, 678901, tzinfo=east))  # fmt: skip
    assert store.hosts.add(given) == given
    found = store.hosts.get("b.1")
    assert found == given
    assert found.created_at.tzinfo is UTC


def test_a_host_name_is_taken_once(store: Store, host: Host) -> None:
    with pytest.raises(DuplicateName, match="named a already") as caught:
        store.hosts.add(host)
    assert caught.value.problems[0].field == "name"


def test_an_unknown_host_is_not_found(store: Store) -> None:
    for call in (store.hosts.get, store.hosts.remove, store.hosts.update):
        with pytest.raises(NotFound, match="no host named nope"):
            call("nope")


def test_update_changes_what_is_given_and_nothing_else(store: Store, host: Host) -> None:
    changed = store.hosts.update("a", peer_uri="qemu+tcp://a/system")
    assert changed == store.hosts.get("a")
    assert changed == Host("a", host.uri, "qemu+tcp://a/system", "", host.created_at)
    assert store.hosts.update("a", peer_uri="", uri="qemu:///session", migration_address="x") == (
        Host("a", "qemu:///session", "", "x", host.created_at)
    )


def test_addresses_of_the_migration_network_change_alone(store: Store, host: Host) -> None:
    assert store.hosts.get("a").migrate_uri == ""
    network = {"migrate_uri": "tcp://10.0.0.2", "listen_address": "10.0.0.2"}
    changed = store.hosts.update("a", network=network)
    assert changed == host.on_network(network) == store.hosts.get("a")
    assert store.hosts.update("a", network={"migrate_uri": ""}).listen_address == "10.0.0.2"


def test_hosts_are_paged_by_name_in_code_point_order(store: Store, clock: Clock) -> None:
    names = ["a", "a-1", "a.1", "a0", "a_1", "b"]
    for name in reversed(names):
        store.hosts.add(Host(name, "qemu:///system", "", "", clock()))
    seen: list[str] = []
    after = None
    while True:
        page = store.hosts.list(after, limit=2)
        seen += [found.name for found in page.items]
        after = page.next
        if after is None:
            break
        assert len(page.items) == 2
    assert seen == names


def test_a_page_that_is_exactly_full_is_the_last(store: Store, host: Host) -> None:
    assert store.hosts.list(limit=1).next is None


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_limit_out_of_range_is_refused(store: Store, limit: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        store.hosts.list(limit=limit)
    assert caught.value.problems[0].field == "limit"


def test_a_cursor_of_another_list_is_refused(store: Store, host: Host, clock: Clock) -> None:
    store.hosts.add(Host("b", "qemu:///system", "", "", clock()))
    cursor = store.hosts.list(limit=1).next
    assert cursor
    with pytest.raises(InvalidInput) as caught:
        store.profiles.list(after=cursor)
    assert caught.value.problems[0].field == "after"


def test_text_that_one_database_cannot_hold_is_refused_by_both(store: Store, clock: Clock) -> None:
    for bad in ("nul\0", "half \ud800"):
        with pytest.raises(InvalidInput) as caught:
            store.hosts.add(Host("c", bad, "", "", clock()))
        assert caught.value.problems[0].field == "uri"
        with pytest.raises(InvalidInput):
            store.hosts.get(bad)
    assert store.hosts.list().items == ()


def test_a_vm_is_remembered_where_it_was_seen_last(store: Store, host: Host, clock: Clock) -> None:
    store.hosts.add(Host("b", "qemu:///system", "", "", clock()))
    early, late, later = clock(), clock(), clock()
    assert store.vms.remember(VM, "guest", "a", late) == Vm(VM, "guest", "a", {}, late)
    store.vms.set_labels(VM, {"tier": "db"})
    assert store.vms.remember(VM, "renamed", "b", later) == (
        Vm(VM, "renamed", "b", {"tier": "db"}, later)
    )
    assert store.vms.remember(VM, "stale", "a", early).host == "b"


def test_a_vm_needs_a_known_host(store: Store, clock: Clock) -> None:
    with pytest.raises(NotFound, match="no host named a"):
        store.vms.remember(VM, "guest", "a", clock())
    with pytest.raises(NotFound, match=str(VM)):
        store.vms.get(VM)
    with pytest.raises(NotFound):
        store.vms.set_labels(VM, {})


def test_vms_are_told_by_the_host_where_they_were_seen(
    store: Store, host: Host, clock: Clock
) -> None:
    store.hosts.add(Host("b", "qemu:///system", "", "", clock()))
    one, two, three = (uuid4() for _ in range(3))
    store.vms.remember_all("a", {one: "same", two: "same"}, clock())
    there = store.vms.remember(three, "three", "b", clock())
    labelled = store.vms.set_labels(one, {"tier": "db"})
    assert store.vms.on_hosts(["a"]) == {"a": {one: labelled, two: store.vms.get(two)}}
    assert store.vms.on_hosts(["b", "c"]) == {"b": {three: there}, "c": {}}
    assert store.vms.on_hosts([]) == {}


def test_removing_a_host_forgets_its_vms(store: Store, host: Host, clock: Clock) -> None:
    store.vms.remember(VM, "guest", "a", clock())
    store.hosts.remove("a")
    assert store.vms.on_hosts(["a"]) == {"a": {}}
    with pytest.raises(NotFound):
        store.hosts.get("a")


def test_a_host_stays_while_an_application_is_open_on_it(store: Store, host: Host) -> None:
    application = store.applications.begin(VM, "a", "p", 1, {}, False, [])
    with pytest.raises(Conflict, match=f"application {application.id} is open on host a"):
        store.hosts.remove("a")
    store.applications.finish(application.id, ApplicationState.APPLIED)
    store.hosts.remove("a")


@pytest.mark.parametrize("ends", [("a", "b"), ("b", "a")])
def test_a_host_stays_while_a_migration_to_or_from_it_is_open(
    store: Store, host: Host, ends: tuple[str, str]
) -> None:
    migration = store.migrations.begin(vm=VM, vm_name="guest", source=ends[0], destination=ends[1])
    with pytest.raises(Conflict, match=f"migration {migration.id} is open on host a"):
        store.hosts.remove("a")
    store.migrations.update(migration.id, state=MigrationState.UNKNOWN)
    store.hosts.remove("a")


def test_a_vm_that_arrives_is_where_it_runs_until_it_runs_there(store: Store, clock: Clock) -> None:
    for name in ("src", "dst"):
        store.hosts.add(Host(name, f"qemu+ssh://{name}/system", "", "", clock()))
    uuid, other = uuid4(), uuid4()
    store.vms.remember_all("src", {uuid: "vm"}, clock())
    store.vms.remember_all("dst", {uuid: "vm", other: "new"}, clock(), {uuid, other})
    assert (store.vms.get(uuid).host, store.vms.get(other).host) == ("src", "dst")
    store.vms.remember_all("dst", {uuid: "vm"}, clock())
    assert store.vms.get(uuid).host == "dst"


def test_a_vm_first_seen_where_it_only_arrives_is_where_another_host_sees_it_run(
    store: Store, host: Host, clock: Clock
) -> None:
    store.hosts.add(Host("b", "qemu:///system", "", "", clock()))
    earlier, later = clock(), clock()
    store.vms.remember_all("b", {VM: "guest"}, later, passing={VM})
    store.vms.remember_all(host.name, {VM: "guest"}, earlier)
    assert store.vms.get(VM).host == host.name

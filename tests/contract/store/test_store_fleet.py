"""Services that share a database: who lives, who drives a host, and who may write."""

from __future__ import annotations

from uuid import UUID

import pytest
from sqlalchemy import text

from tests.contract.store.conftest import NO_POSTGRES
from vmtune.errors import Conflict, NotFound, SetupError, TakenOver
from vmtune.model.cluster import ServiceState
from vmtune.model.host.inventory import Host
from vmtune.model.migration.record import MigrationState
from vmtune.storage import Store, database

VM = UUID("00000000-0000-4000-8000-000000000001")


def joined(url: str, name: str, machine: str = "m") -> Store:
    """A service's own store, as another process has it."""
    store = Store.open(url)
    store.services.join(name, machine, 4711, "0.0")
    return store


def test_beats_count_on_until_the_work_is_taken_over(store: Store, url: str, host: Host) -> None:
    with joined(url, "one") as one, joined(url, "two") as two:
        lease = one.lease
        assert lease is not None
        before = store.services.get("one")
        assert before is not None
        assert one.services.beat(lease)
        # It has answered since it was seen: nobody takes anything from it.
        assert two.services.take_over(before, "two", "m") is None
        silent = store.services.get("one")
        assert silent is not None
        assert silent.beats == before.beats + 1
        assert two.services.take_over(silent, "two", "m") is not None
        assert two.services.take_over(silent, "two", "m") is None  # one heir, once
        assert not one.services.beat(lease)
        dead = store.services.get("one")
        assert dead is not None
        assert (dead.state, dead.heir) == (ServiceState.TAKEN_OVER, "two")
        two.services.settle_estate("one")
        done = store.services.get("one")
        assert done is not None
        assert (done.state, done.heir) == (ServiceState.TAKEN_OVER, "")


def test_who_only_seemed_dead_writes_nothing_more(store: Store, url: str, host: Host) -> None:
    with joined(url, "one") as one, joined(url, "two") as two:
        record = one.migrations.begin(vm=VM, vm_name="v", source="a", destination="b")
        silent = store.services.get("one")
        assert silent is not None
        two.services.take_over(silent, "two", "m")
        events = store.events.newest_id()
        audited = store.audit.check().entries
        with pytest.raises(TakenOver, match="service one"):
            one.migrations.request_abort(record.id)
        with pytest.raises(TakenOver):
            one.vms.remember_all("a", {VM: "guest"}, host.created_at)
        assert store.migrations.get(record.id) == record
        assert store.audit.check().entries == audited
        assert store.events.newest_id() == events
        two.migrations.request_abort(record.id)  # its heir may
        # Once it has started anew it may, too.
        one.services.join("one", "m", 4712, "0.0")
        one.vms.remember_all("a", {VM: "guest"}, host.created_at)


def test_a_second_life_ends_the_first(url: str, host: Host) -> None:
    with joined(url, "one") as first, joined(url, "one") as second:
        assert second.lease is not None
        with pytest.raises(TakenOver):
            first.vms.remember_all("a", {VM: "guest"}, host.created_at)
        second.vms.remember_all("a", {VM: "guest"}, host.created_at)


def test_a_host_is_claimed_once_and_goes_to_the_heir(store: Store, url: str, host: Host) -> None:
    with joined(url, "one") as one, joined(url, "two") as two:
        assert one.services.claim("a", "one", "")
        assert not two.services.claim("a", "two", "")
        assert store.hosts.get("a").owner == "one"
        two.services.order("job", "migration", "a", here="two")
        silent = store.services.get("one")
        assert silent is not None
        taken = two.services.take_over(silent, "two", "m")
        assert taken is not None
        assert (taken.hosts, taken.left) == (("a",), ())
        assert store.hosts.get("a").owner == "two"
        assert [order.job for order in store.services.orders("two")] == ["job"]


def test_nobody_takes_a_host_that_he_does_not_reach(store: Store, url: str, host: Host) -> None:
    with joined(url, "one", "rack1") as one, joined(url, "two", "rack2") as two:
        one.services.claim("a", "one", "rack1")
        with pytest.raises(Conflict, match="rack1"):
            two.services.give("a", "two")
        silent = store.services.get("one")
        assert silent is not None
        taken = two.services.take_over(silent, "two", "rack2")
        assert taken is not None
        assert (taken.hosts, taken.left) == ((), ("a",))
        assert store.hosts.get("a").owner == "one"


def test_a_host_is_given_by_hand_while_nothing_is_open(store: Store, url: str, host: Host) -> None:
    with joined(url, "one") as one, joined(url, "two"):
        one.services.claim("a", "one", "")
        record = one.migrations.begin(vm=VM, vm_name="v", source="a", destination="b")
        with pytest.raises(Conflict, match=str(record.id)):
            store.services.give("a", "two")
        one.migrations.update(record.id, state=MigrationState.FAILED)
        assert store.services.give("a", "two").owner == "two"
        with pytest.raises(NotFound, match="no service named three"):
            store.services.give("a", "three")
        with pytest.raises(NotFound, match="no host named x"):
            store.services.give("x", "two")


def test_an_order_is_kept_until_it_was_begun(store: Store, host: Host) -> None:
    assert store.services.order("own", "migration", "a", here="two") == "two"  # nobody drives it
    store.services.claim("a", "one", "")
    assert store.services.order("own", "migration", "a", here="one") == "one"
    for job in ("first", "second", "first"):
        assert store.services.order(job, "migration", "a", here="two") == "one"
    assert [order.job for order in store.services.orders("one")] == ["first", "second"]
    assert store.services.orders("two") == ()
    assert store.services.cancel_order("second")
    second = store.services.ordered("second")
    assert second is not None
    assert second.cancelled
    store.services.begun("second")
    assert store.services.ordered("second") is None
    assert not store.services.cancel_order("second")


def test_an_operation_knows_which_service_began_it(store: Store, url: str, host: Host) -> None:
    with joined(url, "one") as one, joined(url, "two") as two:
        mine = one.applications.begin(VM, "a", "p", 1, {}, False, [])
        other = two.applications.begin(UUID(int=2), "a", "p", 1, {}, False, [])
        assert one.services.operations_of("one") == {str(mine.id)}
        assert one.services.operations_of("two") == {str(other.id)}


@pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)
def test_one_that_is_stopped_while_it_writes_does_not_stop_the_others(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "IDLE_MS", 1000)
    with Store.open(postgres_url) as stopped, Store.open(postgres_url) as other:

        def write_slowly() -> None:
            with stopped._database.write() as session:
                # It asks nothing more, as if it were stopped here; another writes all the same.
                other.profiles.create("written-meanwhile", "", {})
                session.execute(text("SELECT 1"))

        with pytest.raises(SetupError):
            write_slowly()
        stopped.profiles.create("written-after", "", {})

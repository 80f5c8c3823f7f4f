"""The audit log: made by the changes themselves, and never altered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from tests.contract.store.conftest import Clock
from tests.support.simulated.fakes import VM
from vmtune.errors import DuplicateName, InvalidInput
from vmtune.model.access.audit import FIRST, Act, AuditSort, Change, Entry, Outcome, check
from vmtune.model.access.scopes import Identity, Kind
from vmtune.model.host.inventory import EventTopic, Host
from vmtune.model.migration.record import MigrationState
from vmtune.model.plan.changes import Change as Setting
from vmtune.model.plan.outcome import ApplicationState
from vmtune.model.profile import Target
from vmtune.storage import Store
from vmtune.storage.auditing import ACT, AUDITED, NOT_AUDITED
from vmtune.storage.repositories.audit_log import AuditFilter
from vmtune.storage.tables.core import Base, HostRow

ADA = Identity(Kind.TOKEN, "aaaaaaaaaaaa", "ada")


@contextmanager
def acting(action: str = "do_it", reason: str = "") -> Iterator[Act]:
    act = Act(ADA, "127.0.0.1", action, reason, "r1")
    token = ACT.set(act)
    try:
        yield act
    finally:
        act.is_open = False
        ACT.reset(token)


def entries(store: Store) -> list[Entry]:
    return list(store.audit.oldest_first(AuditFilter()))


def changes(store: Store) -> list[tuple[str, str, Any, Any]]:
    return [(c.what, c.key, c.before, c.after) for e in entries(store) for c in e.changes]


def test_every_table_is_audited_or_says_why_not() -> None:
    audited = {row.__tablename__ for row in AUDITED}
    assert audited | set(NOT_AUDITED) == set(Base.metadata.tables)
    assert not audited & set(NOT_AUDITED)
    for row, told in AUDITED.items():
        assert set(told.columns) <= set(row.__table__.columns.keys()), row
        assert not {name for name in told.columns if "secret" in name or "hash" in name}


def test_a_change_is_told_with_who_from_where_and_why(store: Store) -> None:
    with acting("create_profile", "ticket 7") as act:
        store.profiles.create("fast", "quick", {"multifd": True}, "first")
    (entry,) = entries(store)
    assert (entry.actor, entry.origin, entry.action) == (
        replace(ADA),
        "127.0.0.1",
        "create_profile",
    )
    assert (entry.reason, entry.request, entry.outcome) == ("ticket 7", "r1", Outcome.CHANGED)
    assert entry.subject == "profile fast"
    assert changes(store) == [
        ("profile", "fast", None, {"description": "quick", "current": 1, "deleted_at": None}),
        ("revision", "fast 1", None, {"values": {"multifd": True}, "steps": [], "note": "first"}),
    ]
    assert act.entries == 1


def test_what_was_before_is_told(store: Store, host: Host) -> None:
    store.vms.remember_all("a", {VM: "guest"}, host.created_at)
    store.vms.set_labels(VM, {"tier": "web"})
    store.profiles.create("fast", "", {"multifd": True})
    assigned = store.assignments.add(Target.DEFAULT, "", "fast")
    before = len(changes(store))
    with acting():
        store.vms.set_labels(VM, {"tier": "db"})
        store.profiles.revise("fast", {"multifd": False})
        store.assignments.remove(assigned.id)
        store.hosts.update("a", uri="qemu+ssh://root@a/system")
        store.hosts.remove("a")
    seen = changes(store)[before:]
    network = dict.fromkeys(("migrate_uri", "listen_address", "disks_uri"), "")
    rest = {
        "peer_uri": "",
        "migration_address": "",
        "owner": "",
        "maintenance_since": None,
        **network,
    }
    was, now = {"labels": {"tier": "web"}}, {"labels": {"tier": "db"}}
    assert seen[0] == ("labels", str(VM), was, now)
    assert ("profile", "fast", {"current": 1}, {"current": 2}) in seen
    gone = {"target": "default", "key": "", "profile": "fast"}
    assert ("assignment", str(assigned.id), gone, None) in seen
    assert ("host", "a", {"uri": "qemu:///system"}, {"uri": "qemu+ssh://root@a/system"}) in seen
    assert seen[-2:] == [
        ("host", "a", {"uri": "qemu+ssh://root@a/system", **rest}, None),
        ("labels", str(VM), now, None),
    ]


def test_an_application_tells_what_was_there_and_what_became_of_it(store: Store) -> None:
    with acting("apply_to_vm"):
        begun = store.applications.begin(
            VM, "a", "p", 1, {"downtime_limit_ms": 200}, False, [Setting("downtime_limit_ms", 300)]
        )
        store.applications.finish(begun.id, ApplicationState.APPLIED, [], [])
    intent, outcome = entries(store)
    told = intent.changes[0].after
    assert told is not None
    assert told["wanted"] == {"downtime_limit_ms": 200}
    assert told["journal"][0]["value"] == 300
    assert outcome.changes[0].before == {"state": "intended"}
    assert outcome.changes[0].after == {"state": "applied"}


def test_what_happens_after_the_request_is_the_services_doing(store: Store) -> None:
    with acting("start_migration") as act:
        begun = store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
        store.migrations.update(begun.id, state=MigrationState.PREPARING)  # no decision
        act.is_open = False
        store.migrations.request_abort(begun.id)
    store.profiles.create("p", "", {})
    first, second, third = entries(store)
    assert first.actor == ADA
    assert (second.actor.kind, second.action) == (Kind.SERVICE, "start_migration")
    assert (third.actor.kind, third.action) == (Kind.SERVICE, "")


def test_what_is_measured_or_seen_is_not_told(store: Store, host: Host) -> None:
    count = len(entries(store))
    with acting() as act:
        store.vms.remember_all("a", {VM: "guest"}, host.created_at)
        store.events.append(EventTopic.VM, "x", {})
    assert len(entries(store)) == count
    assert act.entries == 0


def half_way(store: Store) -> None:
    """Change something, and fail before the transaction ends."""
    with store._database.write() as session:
        now = store._database.now()
        session.add(HostRow(name="z", uri="u", peer_uri="", migration_address="", created_at=now))
        session.flush()
        raise RuntimeError


def test_a_change_that_is_not_committed_is_not_told(store: Store) -> None:
    store.profiles.create("p", "", {})
    with acting(), pytest.raises(DuplicateName):
        store.profiles.create("p", "", {})
    with acting(), pytest.raises(RuntimeError):
        half_way(store)
    assert len(entries(store)) == 1


def test_refusals_are_added_and_filtered(store: Store, clock: Clock) -> None:
    with acting("add_host") as act:
        store.audit.add(act, Outcome.REFUSED, "host b%", 403, ["scope_missing"])
    began = clock.time
    with acting("remove_host"):
        store.profiles.create("p", "", {})

    def numbers(**wanted: Any) -> list[int]:
        return [e.number for e in store.audit.list(AuditFilter(**wanted)).items]

    assert numbers() == [2, 1]
    assert numbers(outcome=Outcome.REFUSED) == [1]
    assert numbers(action="remove_host") == [2]
    assert numbers(actor=ADA.id) == [2, 1]
    assert numbers(actor="nobody") == []
    assert numbers(about="b%") == [1]
    assert numbers(about="%") == [1]
    assert numbers(since=began + timedelta(milliseconds=1)) == [2]
    assert numbers(until=began) == []
    page = store.audit.list(AuditFilter(), limit=1)
    assert [e.number for e in page.items] == [2]
    assert [e.number for e in store.audit.list(AuditFilter(), page.next, 1).items] == [1]
    (refused,) = store.audit.list(AuditFilter(outcome=Outcome.REFUSED)).items
    assert (refused.status, refused.codes, refused.changes) == (403, ("scope_missing",), ())


def test_text_that_no_database_takes_does_not_stop_the_log(store: Store) -> None:
    odd = Act(ADA, "x" * 5000, "a\0b", "\ud800" * 900, "r")
    store.audit.add(odd, Outcome.REFUSED, "\0", 403, [])
    (entry,) = entries(store)
    assert (entry.action, entry.subject, len(entry.reason)) == ("a?b", "?", 500)
    assert store.audit.check().broken_at is None


def alter(url: str, statement: str) -> None:
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            connection.execute(text(statement))
    finally:
        engine.dispose()


@pytest.mark.parametrize("what", ["UPDATE audit SET reason = 'x'", "DELETE FROM audit"])
def test_the_database_itself_refuses_to_alter_it(store: Store, url: str, what: str) -> None:
    with acting():
        store.profiles.create("p", "", {})
    with pytest.raises(DBAPIError, match="can only be added to"):
        alter(url, what)
    assert store.audit.check().entries == 1


@pytest.mark.parametrize(
    ("statement", "broken_at"),
    [
        ("UPDATE audit SET reason = 'another' WHERE number = 2", 2),
        ("UPDATE audit SET actor = 'root' WHERE number = 3", 3),
        ("UPDATE audit SET changes = '[]' WHERE number = 1", 1),
        ("DELETE FROM audit WHERE number = 2", 3),
        ("UPDATE audit SET number = 9 WHERE number = 3", 9),
    ],
)
def test_what_was_altered_past_that_is_found(
    store: Store, url: str, statement: str, broken_at: int
) -> None:
    with acting():
        for name in ("a", "b", "c"):
            store.profiles.create(name, "", {"multifd": True})
    sound = store.audit.check()
    assert (sound.entries, sound.broken_at) == (3, None)
    assert sound.newest == entries(store)[-1].hash
    if url.startswith("sqlite"):
        alter(url, "DROP TRIGGER audit_no_update")
        alter(url, "DROP TRIGGER audit_no_delete")
        alter(url, statement)
    else:
        alter(url, "ALTER TABLE audit DISABLE TRIGGER ALL")
        alter(url, statement)
        alter(url, "ALTER TABLE audit ENABLE TRIGGER ALL")
    assert store.audit.check().broken_at == broken_at


def test_every_field_is_covered_by_the_hash(store: Store) -> None:
    with acting("a", "why"):
        store.profiles.create("p", "", {})
    (entry,) = entries(store)
    others: dict[str, Any] = {
        "number": 2,
        "at": entry.at + timedelta(microseconds=1),
        "actor": Identity(Kind.TOKEN, "aaaaaaaaaaaa", "eve"),
        "origin": "x", "action": "x", "subject": "x", "outcome": Outcome.DONE, "status": 1,
        "reason": "x", "request": "x", "codes": ("x",), "changes": (Change("x", "x", None, {}),),
    }  # fmt: skip
    assert set(others) | {"hash"} == {f for f in Entry.__dataclass_fields__}
    for name, value in others.items():
        altered = replace(entry, **{name: value})
        assert altered.hash_after(FIRST) != entry.hash, name
    assert check([entry]).newest == entry.hash
    assert check([]).entries == 0


def test_it_is_listed_from_either_end_and_a_cursor_is_of_its_order(store: Store) -> None:
    for name in ("one", "two", "three"):
        store.profiles.create(name, "", {}, "")
    everything = AuditFilter()
    newest = store.audit.list(everything, limit=2)
    assert [entry.number for entry in newest.items] == [3, 2]
    oldest = store.audit.list(everything, limit=2, sort=AuditSort.OLDEST)
    assert [entry.number for entry in oldest.items] == [1, 2]
    rest = store.audit.list(everything, oldest.next, 2, AuditSort.OLDEST)
    assert [entry.number for entry in rest.items] == [3]
    assert rest.next is None
    with pytest.raises(InvalidInput):
        store.audit.list(everything, oldest.next, 2)


def test_a_hosts_maintenance_is_told(store: Store, host: Host) -> None:
    with acting("set_host_maintenance"):
        store.hosts.set_maintenance(host.name, on=True)
    what, key, before, after = changes(store)[-1]
    assert (what, key, before) == ("host", host.name, {"maintenance_since": None})
    assert after["maintenance_since"]

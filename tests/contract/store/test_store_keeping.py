"""Thinning and dropping what is old, and a cut of the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from tests.contract.store.conftest import Clock
from tests.support.examples.rounds import make_rounds
from tests.support.examples.samples import make_samples
from tests.support.simulated.fakes import VM
from vmtune.errors import NotFound
from vmtune.model.access.audit import NO_CUT, Act, Outcome
from vmtune.model.access.scopes import SERVICE
from vmtune.model.host.inventory import Host
from vmtune.model.migration.record import Migration, MigrationState, Sample, SamplesKept
from vmtune.model.retention import thin
from vmtune.storage import Store
from vmtune.storage.repositories.audit_log import AuditFilter
from vmtune.storage.repositories.retention import Old
from vmtune.storage.series.chunks import SAMPLES, Chunks

DAY = timedelta(days=1)
ACT = Act(SERVICE, "", "keep_house")


def migrated(store: Store, count: int = 450, ended: bool = True) -> Migration:
    record = store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
    store.migrations.add_samples(record.id, make_samples(count))
    store.migrations.add_rounds(record.id, make_rounds(30))
    if ended:
        store.migrations.update(record.id, state=MigrationState.CANCELLED)
    return store.migrations.get(record.id)


def entries(store: Store) -> list[int]:
    return [entry.number for entry in store.audit.oldest_first(AuditFilter())]


def test_vms_that_are_gone_are_forgotten_where_their_host_answers(
    store: Store, clock: Clock, host: Host
) -> None:
    gone, busy, there, unknown = (UUID(int=number) for number in range(1, 5))
    store.hosts.add(replace(host, name="silent", uri="qemu+ssh://silent/system"))
    store.vms.remember_all(host.name, {gone: "gone", busy: "busy", there: "there"}, clock())
    store.vms.remember_all("silent", {unknown: "unknown"}, clock())
    store.vms.set_labels(gone, {"tier": "web"})
    store.tunings.note(gone, "p", 1, None, ())
    record = store.migrations.begin(vm=busy, vm_name="busy", source=host.name, destination="silent")
    clock.time += 31 * DAY
    before = clock() - 30 * DAY
    assert store.retention.old_vms(before) == 0  # nobody was seen since: the host may be silent
    store.vms.remember_all(host.name, {there: "there"}, clock())
    assert store.retention.old_vms(before) == 1
    assert store.retention.drop_vms(before) == 1
    assert store.retention.drop_vms(before) == 0
    with pytest.raises(NotFound):
        store.vms.get(gone)
    assert gone not in store.tunings.all()
    for kept in (busy, there, unknown):
        assert store.vms.get(kept).uuid == kept
    (entry,) = [e for e in store.audit.oldest_first(AuditFilter()) if e.changes
                and e.changes[0].what == "labels" and e.changes[0].after is None]  # fmt: skip
    assert entry.changes[0].before == {"labels": {"tier": "web"}}
    store.migrations.update(record.id, state=MigrationState.CANCELLED)
    assert store.retention.drop_vms(before) == 1  # the operation has ended


def test_old_samples_are_thinned_and_the_record_says_so(store: Store, clock: Clock) -> None:
    record = migrated(store)
    before = store.migrations.samples(record.id)
    assert store.retention.to_thin(clock() - DAY, 10) == ()
    clock.time += 2 * DAY
    (number,) = store.retention.to_thin(clock() - DAY, 10)
    would_thin, would_drop = store.retention.old_samples(clock() - DAY, None)
    assert (would_thin.migrations, would_thin.samples, would_drop) == (1, 450, Old(0, 0, 0))
    assert would_thin.bytes > 1000
    gone = store.retention.thin(number, 10)
    after = store.migrations.samples(record.id)
    assert after == tuple(thin(before, 10))
    assert gone == len(before) - len(after) > 200
    found = store.migrations.get(record.id)
    assert (found.samples_kept, found.samples_thinned_s) == (SamplesKept.THINNED, 10)
    assert len(store.migrations.rounds(record.id)) == 30
    assert store.retention.to_thin(clock() - DAY, 10) == ()
    assert store.retention.thin(number, 10) == 0
    assert store.migrations.samples(record.id) == after
    assert store.audit.check().broken_at is None


def test_older_ones_are_dropped_with_the_rounds_and_the_record_stays(
    store: Store, clock: Clock
) -> None:
    records = [migrated(store), migrated(store)]
    clock.time += 2 * DAY
    numbers = store.retention.to_drop(clock() - DAY, 10)
    store.retention.thin(numbers[0], 10)
    assert store.retention.to_drop(clock() - DAY, 10) == numbers
    assert store.retention.old_samples(clock() - DAY, clock() - DAY)[0] == Old(0, 0, 0), "once"
    assert store.retention.drop(numbers[1]) == 450
    assert store.retention.drop(numbers[0]) > 0
    assert store.retention.to_drop(clock() - DAY, 10) == ()
    for record in records:
        found = store.migrations.get(record.id)
        assert found.samples_kept is SamplesKept.DROPPED
        assert found.state is MigrationState.CANCELLED
        assert store.migrations.samples(record.id) == ()
        assert store.migrations.rounds(record.id) == ()


def test_what_has_not_ended_is_left_alone(store: Store, clock: Clock) -> None:
    running = migrated(store, ended=False)
    clock.time += 1000 * DAY
    assert store.retention.to_thin(clock(), 10) == store.retention.to_drop(clock(), 10) == ()
    for do in (lambda: store.retention.thin(1, 10), lambda: store.retention.drop(1)):
        assert do() == 0
    assert len(store.migrations.samples(running.id)) == 450


def test_what_was_written_to_meanwhile_is_thinned_later(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = migrated(store)
    more = make_samples(451)[-1:]
    read = SAMPLES.each

    def written_meanwhile(_: Chunks[Sample], session: Session, number: int) -> Iterator[Sample]:
        store.migrations.add_samples(record.id, more)
        return read(session, number)

    monkeypatch.setattr(Chunks, "each", written_meanwhile)
    clock.time += 2 * DAY
    (number,) = store.retention.to_thin(clock(), 10)
    assert store.retention.thin(number, 10) == 0
    assert len(store.migrations.samples(record.id)) == 451
    assert store.migrations.get(record.id).samples_kept is SamplesKept.WHOLE


def test_one_of_several_is_told_that_it_is_time(store: Store, clock: Clock) -> None:
    assert store.retention.begin_task("x", 60)
    assert not store.retention.begin_task("x", 60)
    assert store.retention.begin_task("y", 60)
    clock.time += timedelta(seconds=60)
    assert store.retention.begin_task("x", 60)
    clock.time -= DAY
    assert store.retention.begin_task("x", 60), "the clock was set back"


def note(store: Store, count: int) -> None:
    for _ in range(count):
        store.audit.add(ACT, Outcome.REFUSED, "x", 403, ())


def test_old_entries_go_and_those_that_are_left_still_follow(store: Store, clock: Clock) -> None:
    note(store, 7)
    clock.time += 2 * DAY
    note(store, 3)
    assert store.retention.old_entries(clock() - DAY) == 7
    cut = store.retention.cut_audit(clock() - DAY, ACT)
    assert cut is not None
    assert cut.number == 7
    assert entries(store) == [*range(1, 12)], "let go, and not dropped yet"
    assert store.audit.check().broken_at is None
    assert store.retention.drop_entries() == 7
    assert store.retention.drop_entries() == 0
    assert entries(store) == [8, 9, 10, 11]
    found = store.audit.check()
    assert (found.entries, found.dropped, found.broken_at) == (4, 7, None)
    (told,) = [entry for entry in store.audit.oldest_first(AuditFilter()) if entry.changes]
    assert (told.subject, told.outcome, told.action) == ("audit 1 to 7", "changed", "keep_house")
    assert cut.is_logged_by(told)
    assert store.retention.cut_audit(clock() - DAY, ACT) is None, "none is old"
    note(store, 1)
    assert entries(store)[-1] == 12
    clock.time += 2 * DAY
    again = store.retention.cut_audit(clock() - DAY, ACT)
    assert again is not None
    while store.retention.drop_entries():
        pass
    assert entries(store) == [13], "all but the one that tells of it"
    assert store.audit.check().broken_at is None
    note(store, 1)
    assert entries(store) == [13, 14]


def test_entries_go_a_bounded_number_at_a_time(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmtune.storage.repositories.retention._ENTRIES_AT_ONCE", 3)
    note(store, 7)
    clock.time += 2 * DAY
    store.retention.cut_audit(clock() - DAY, ACT)
    counts = []
    while count := store.retention.drop_entries():
        counts.append(count)
        assert store.audit.check().broken_at is None
    assert counts == [3, 3, 1]


def test_a_clock_that_was_set_back_lets_no_entry_go_before_a_younger_one(
    store: Store, clock: Clock
) -> None:
    note(store, 2)
    clock.time += 10 * DAY
    note(store, 1)
    clock.time -= 10 * DAY
    note(store, 4)
    clock.time += 5 * DAY
    assert store.retention.old_entries(clock() - DAY) == 2
    cut = store.retention.cut_audit(clock() - DAY, ACT)
    assert cut is not None
    assert cut.number == 2


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM audit WHERE number = 1",
        "INSERT INTO audit_cuts VALUES (3, 'made up', '2026-11-21 00:00:00')",
        "INSERT INTO audit_cuts VALUES (99, '{hash}', '2026-11-21 00:00:00')",
    ],
)
def test_the_database_lets_no_entry_go_that_was_not_cut_off(
    store: Store, url: str, statement: str
) -> None:
    note(store, 4)
    hash = store.audit.list(AuditFilter()).items[0].hash
    engine = create_engine(url)
    refused = pytest.raises(DBAPIError, match=r"only be added to|no entry of the audit log")
    with refused, engine.begin() as connection:
        connection.execute(text(statement.format(hash=hash)))
    engine.dispose()
    assert store.audit.check().entries == 4


@pytest.mark.parametrize("what", ["UPDATE audit_cuts SET number = 3", "DELETE FROM audit_cuts"])
def test_a_cut_stays(store: Store, clock: Clock, url: str, what: str) -> None:
    note(store, 4)
    clock.time += 2 * DAY
    store.retention.cut_audit(clock() - DAY, ACT)
    engine = create_engine(url)
    with pytest.raises(DBAPIError, match="only be added to"), engine.begin() as connection:
        connection.execute(text(what))
    engine.dispose()


def test_a_cut_that_no_entry_tells_of_is_found(store: Store, clock: Clock, url: str) -> None:
    """Somebody drops what they have done by the way that old entries go."""
    note(store, 6)
    hash = store.audit.oldest_first(AuditFilter())[3].hash
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO audit_cuts VALUES (4, :hash, '2026-11-21 00:00:00')"), {"hash": hash}
        )
        connection.execute(text("DELETE FROM audit WHERE number <= 4"))
    engine.dispose()
    found = store.audit.check()
    assert (found.entries, found.dropped, found.broken_at) == (2, 4, 4)
    assert NO_CUT.number == 0

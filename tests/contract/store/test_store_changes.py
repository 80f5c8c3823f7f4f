"""A mark of the content changes with each commit, whoever made it, and with nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from sqlalchemy import text

from vmtune.errors import NotFound, SetupError
from vmtune.model.host.inventory import EventTopic, Host
from vmtune.storage import Store
from vmtune.storage.changes import Mark
from vmtune.storage.database import Lease


def present(store: Store) -> Mark:
    if store.changes.needs_look:
        store.changes.look()
    mark = store.changes.mark()
    assert mark is not None
    return mark


def a_host(name: str) -> Host:
    return Host(name, "qemu:///system", "", "", datetime.now(UTC))


def test_reading_changes_nothing(store: Store, host: Host) -> None:
    before = present(store)
    assert store.hosts.get("a").name == "a"
    assert present(store) == before


def test_own_commits_are_seen_without_a_look(store: Store) -> None:
    marks = [store.changes.mark()]
    for name in ("b", "c"):
        store.hosts.add(a_host(name))
        marks.append(store.changes.mark())
    store.events.append(EventTopic.HOST, "b", {})
    marks.append(store.changes.mark())
    assert len(set(marks)) == 4


def test_an_own_commit_changes_the_mark_once(store: Store) -> None:
    present(store)
    store.hosts.add(a_host("b"))
    mark = store.changes.mark()
    assert present(store) == mark


def test_commits_of_others_are_seen(store: Store, url: str) -> None:
    before = present(store)
    with Store.open(url) as other:
        other.hosts.add(a_host("b"))
    assert present(store) != before


def test_progress_leaves_what_is_settled(store: Store, url: str, host: Host) -> None:
    before = present(store)
    store.events.append(EventTopic.HOST, host.name, {})
    one = present(store)
    with Store.open(url) as other:
        other.events.append(EventTopic.HOST, host.name, {})
    both = present(store)
    assert len({before.whole, one.whole, both.whole}) == 3
    assert one.settled == before.settled
    if not url.startswith("sqlite"):  # which tells only that another process wrote
        assert both.settled == before.settled
    store.hosts.add(a_host("b"))
    assert present(store).settled != both.settled


def test_a_heartbeat_ends_no_answer(store: Store, url: str) -> None:
    if url.startswith("sqlite"):
        pytest.skip("SQLite tells of every commit, and a database of it has one service")
    lease = Lease("s1", store.services.join("s1", "m", 1, "1").epoch)
    before = present(store)
    assert store.services.beat(lease)
    assert present(store) == before


def test_what_another_process_wrote_between_is_no_progress(store: Store, url: str) -> None:
    before = present(store)
    store.events.append(EventTopic.HOST, "a", {})
    with Store.open(url) as other:
        other.hosts.add(a_host("b"))
    store.events.append(EventTopic.HOST, "a", {})
    assert present(store).settled != before.settled


def test_progress_that_is_rolled_back_hides_nothing(store: Store, url: str) -> None:
    before = present(store)
    with pytest.raises(NotFound):
        store.migrations.add_samples(uuid4(), ())
    assert present(store).settled == before.settled
    with Store.open(url) as other:
        other.hosts.add(a_host("b"))
    assert present(store).settled != before.settled


def test_a_lost_connection_may_have_missed_a_change(store: Store) -> None:
    if not store.changes.needs_look:
        pytest.skip("nothing is listened to")
    before = present(store)
    with store._database.read() as session:
        its = "query LIKE 'LISTEN%' AND datname = current_database()"
        session.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {its}"))
    with pytest.raises(SetupError):
        store.changes.look()
    assert present(store).settled != before.settled


def test_a_database_that_is_gone_has_no_mark(store: Store, url: str) -> None:
    if not url.startswith("sqlite"):
        pytest.skip("a server that is gone raises, as any call does")
    there = store.changes._database.url
    store.changes._database.url = there.set(database="/nowhere/x.db")
    assert store.changes.mark() is None
    store.changes._database.url = there
    assert store.changes.mark() is not None


def test_once_closed_no_connection_is_made(store: Store) -> None:
    """As by a thread that still answers a request while the service ends."""
    store.close()
    store.changes.look()
    store.changes.mark()
    assert (store.changes._sqlite, store.changes._listening) == (None, None)

"""A mark of the content changes with each commit, whoever made it, and with nothing else."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import UTC, datetime

import pytest

from vmtune.model.host.inventory import EventTopic, Host
from vmtune.storage import Store


def present(store: Store) -> Hashable:
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


def test_a_database_that_is_gone_has_no_mark(store: Store, url: str) -> None:
    if not url.startswith("sqlite"):
        pytest.skip("a server that is gone raises, as any call does")
    store.close()
    store.changes._database.url = store.changes._database.url.set(database="/nowhere/x.db")
    assert store.changes.mark() is None

"""Bodies that are known by the version of what they show."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from tests.support.examples.samples import make_samples
from tests.support.served.api import Api
from vmtune.api.http.known_bodies import KnownBodies
from vmtune.model.migration.record import MigrationState
from vmtune.storage.repositories.migrations import MigrationRepository


def test_only_the_version_that_was_asked_for_is_given() -> None:
    known = KnownBodies()
    assert known.version("a") is None
    known.keep("a", 1, b"one")
    assert (known.version("a"), known.body("a", 1), known.body("a", 2)) == (1, b"one", None)
    known.keep("a", 2, b"two")
    assert (known.body("a", 1), known.body("a", 2)) == (None, b"two")


def test_the_ones_used_longest_ago_go_first() -> None:
    known = KnownBodies(max_bytes=5)
    known.keep("a", 1, b"aa")
    known.keep("b", 1, b"bb")
    assert known.body("a", 1) == b"aa"
    known.keep("c", 1, b"cc")
    assert [known.version(key) for key in "abc"] == [1, None, 1]
    known.keep("c", 2, b"c")
    known.keep("d", 1, b"dd")
    assert [known.version(key) for key in "acd"] == [1, 2, 1]


def test_a_body_that_is_too_large_is_not_kept() -> None:
    known = KnownBodies()
    known.keep("a", 1, b"a")
    known.keep("a", 2, b"a" * ((1 << 20) + 1))
    assert known.version("a") is None


async def test_samples_are_read_again_only_where_they_changed(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = api.container.queries._store
    begun = {"vm_name": "web1", "source": "a", "destination": "b"}
    made = store.migrations.begin(vm=uuid4(), state=MigrationState.STARTING, **begun)
    taken = make_samples(3)
    store.migrations.add_samples(made.id, taken)
    given = []
    real = MigrationRepository.with_samples

    def noted(*arguments: object) -> object:
        found = real(*arguments)  # type: ignore[arg-type]
        given.append(None if found.taken is None else len(found.taken))
        return found

    monkeypatch.setattr(MigrationRepository, "with_samples", noted)
    path = f"/migrations/{made.id}/samples"
    first = await api.get(path)
    store.migrations.update(made.id, state=MigrationState.COMPLETED)
    assert await api.get(path) == first
    assert given == [3, None]
    store.migrations.add_samples(made.id, [replace(taken[0], at_ms=taken[-1].at_ms + 1)])
    assert len((await api.get(path))["items"]) == 4
    assert given == [3, None, 4]

"""Keys of requests, on one database: of several services, and across their restarts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest

from tests.contract.store.conftest import Clock
from vmtune.errors import InvalidInput, OperationInProgress
from vmtune.model.access.scopes import Kind
from vmtune.model.host.inventory import Host
from vmtune.model.idempotency import Begun, Claim, KeptAnswer
from vmtune.storage import Store
from vmtune.storage.claims import CLAIM, InHand

KEY = Claim(Kind.TOKEN, "t", "k", "0" * 64, "start_migration", Begun.MIGRATION)
ANSWER = KeptAnswer(202, {"location": "/here"}, '{"name": "ü"}')
VM = UUID(int=1)


def migrate(store: Store, key: Claim, is_open: bool = True) -> str:
    """Begin a migration as the request with *key*."""
    token = CLAIM.set(InHand(key, is_open))
    try:
        record = store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
    finally:
        CLAIM.reset(token)
    return str(record.id)


def test_an_answer_is_kept(store: Store) -> None:
    assert store.idempotency.claim(KEY) is None
    store.idempotency.keep(KEY, ANSWER)
    assert store.idempotency.claim(KEY) == ANSWER
    other = Claim(Kind.TOKEN, "t", "k", "1" * 64, "start_migration")
    with pytest.raises(InvalidInput, match="sent with another request"):
        store.idempotency.claim(other)
    assert store.idempotency.claim(Claim(Kind.USER, "t", "k", "1" * 64, "x")) is None


def test_what_began_is_noted_with_it(store: Store, url: str) -> None:
    store.idempotency.claim(KEY)
    began = migrate(store, KEY)
    store.idempotency.release(KEY)
    assert store.idempotency.claim(KEY) == began
    with Store.open(url) as later:  # a service that starts anew
        assert later.idempotency.claim(KEY) == began


def test_an_application_is_noted_too(store: Store) -> None:
    key = Claim(Kind.TOKEN, "t", "a", "0" * 64, "apply_to_vm", Begun.APPLICATION)
    store.idempotency.claim(key)
    token = CLAIM.set(InHand(key))
    try:
        begun = store.applications.begin(VM, "a", "p", 1, {}, False, ())
    finally:
        CLAIM.reset(token)
    store.idempotency.release(key)
    assert store.idempotency.claim(key) == str(begun.id)


def test_what_is_refused_gives_the_key_back(store: Store) -> None:
    store.idempotency.claim(KEY)
    store.idempotency.release(KEY)
    other = Claim(Kind.TOKEN, "t", "k", "1" * 64, "start_migration")
    assert store.idempotency.claim(other) is None


def test_a_transaction_that_is_rolled_back_began_nothing(store: Store, host: Host) -> None:
    store.idempotency.claim(KEY)
    record = store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
    with pytest.raises(OperationInProgress, match=str(record.id)):
        migrate(store, KEY)
    store.idempotency.release(KEY)
    assert store.idempotency.claim(KEY) is None


def test_jobs_that_a_request_left_behind_note_nothing(store: Store) -> None:
    store.idempotency.claim(KEY)
    migrate(store, KEY, is_open=False)
    store.idempotency.release(KEY)
    assert store.idempotency.claim(KEY) is None


def test_of_services_that_share_the_database_one_carries_it_out(store: Store, url: str) -> None:
    if url.startswith("sqlite"):
        pytest.skip("one service uses a SQLite file")
    store.services.join("one", "m", 1, "0")
    with Store.open(url) as second:
        second.services.join("two", "m", 2, "0")
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(each.idempotency.claim, KEY) for each in (store, second)]
        errors = [each.exception() for each in asked]
        assert sorted(map(type, errors), key=str) == sorted(
            [type(None), OperationInProgress], key=str
        )
        winner, other = (store, second) if errors[0] is None else (second, store)
        began = migrate(winner, KEY)
        with pytest.raises(OperationInProgress, match="is being executed"):
            other.idempotency.claim(KEY)
        name = "one" if winner is store else "two"
        dead = other.services.get(name)
        assert dead is not None
        assert other.services.take_over(dead, "heir", "m") is not None
        assert other.idempotency.claim(KEY) == began  # it was killed before it answered


def test_a_service_that_starts_anew_carries_out_what_had_not_begun(store: Store, url: str) -> None:
    store.idempotency.claim(KEY)
    with Store.open(url) as later:
        assert later.idempotency.claim(KEY) is None


def test_old_keys_are_forgotten(store: Store, clock: Clock) -> None:
    for number in range(3):
        store.idempotency.claim(Claim(Kind.TOKEN, "t", str(number), "0" * 64, "x"))
    clock.time += timedelta(days=7)
    store.idempotency.claim(KEY)
    before = clock.time - timedelta(days=6)
    assert store.idempotency.old(before) == 3
    assert store.idempotency.forget(before) == 3
    assert store.idempotency.forget(before) == 0
    with pytest.raises(InvalidInput):
        store.idempotency.claim(Claim(Kind.TOKEN, "t", "k", "1" * 64, "x"))

"""Tokens, and the browsers that signed in with them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, text

from tests.contract.store.conftest import Clock
from vmtune.errors import DuplicateName, NotFound
from vmtune.model.access.scopes import Identity, Kind, Reach, Rights, Scope
from vmtune.model.access.tokens import Secret, Token, TokenState
from vmtune.storage import Store

TIME = datetime(2026, 11, 21, tzinfo=UTC)
ROOT = Identity(Kind.USER, "0", "root")
RIGHTS = Rights(
    frozenset({Scope.READ, Scope.APPLY}),
    Reach(frozenset({"a", "b"}), frozenset({("tier", "db")})),
)


def token(name: str, creator: Identity = ROOT, **more: datetime) -> Token:
    return Token(Secret.make().id, name, RIGHTS, creator, TIME, **more)


def test_a_token_comes_back_as_it_was(store: Store) -> None:
    made = store.tokens.add(token("ci", expires_at=TIME + timedelta(days=3)), "hash")
    assert store.tokens.get(made.id) == made
    assert made.rights == RIGHTS
    assert made.creator == ROOT
    found = store.tokens.find(made.id)
    assert found is not None
    assert (found.token, found.secret_hash, found.creators) == (made, "hash", ())
    assert store.tokens.find("nope") is None
    with pytest.raises(NotFound, match="vmtune token list"):
        store.tokens.get("nope")


def test_everything_and_nothing_are_two_things(store: Store) -> None:
    for name, reach in (("all", Reach()), ("none", Reach(frozenset()))):
        made = Token(Secret.make().id, name, Rights(RIGHTS.scopes, reach), ROOT, TIME)
        assert store.tokens.add(made, "hash").rights.reach == reach


def test_a_name_is_free_again_once_its_token_lets_nobody_in(store: Store, clock: Clock) -> None:
    first = store.tokens.add(token("ci"), "hash")
    with pytest.raises(DuplicateName):
        store.tokens.add(token("ci"), "hash")
    store.tokens.revoke(first.id)
    store.tokens.add(token("ci", expires_at=clock.time + timedelta(seconds=2)), "hash")
    clock.time += timedelta(seconds=5)
    store.tokens.add(token("ci"), "hash")
    listed = store.tokens.list()
    assert [t.state(clock.time) for t in listed.items].count(TokenState.ACTIVE) == 1
    assert len(listed.items) == 3


def test_lists_are_paged_by_name(store: Store) -> None:
    for name in ("c", "a", "b", "d"):
        store.tokens.add(token(name), "hash")
    names: list[str] = []
    after = None
    while True:
        page = store.tokens.list(after, 1)
        names += [t.name for t in page.items]
        after = page.next
        if after is None:
            break
    assert names == ["a", "b", "c", "d"]


def test_who_made_a_token_is_found_up_to_the_first(store: Store) -> None:
    first = store.tokens.add(token("first"), "hash")
    second = store.tokens.add(token("second", first.identity), "hash")
    third = store.tokens.add(token("third", second.identity), "hash")
    found = store.tokens.find(third.id)
    assert found is not None
    assert [t.name for t in found.creators] == ["second", "first"]


def test_a_token_whose_creator_is_not_to_be_found_is_not_either(store: Store) -> None:
    gone = Identity(Kind.TOKEN, "gone", "gone")
    orphan = store.tokens.add(token("orphan", gone), "hash")
    assert store.tokens.find(orphan.id) is None
    above: Identity = ROOT
    for number in range(20):
        made = store.tokens.add(token(f"n{number}", above), "hash")
        above = made.identity
    assert store.tokens.find(made.id) is None


def test_revoking_is_noted_once_and_signs_browsers_out(store: Store, clock: Clock) -> None:
    made = store.tokens.add(token("ci"), "hash")
    later = clock.time + timedelta(days=1)
    store.tokens.sign_in("s1", made.identity, "127.0.0.1", later)
    found = store.tokens.session("s1")
    assert found is not None
    assert found.found is not None
    assert found.identity == made.identity
    revoked = store.tokens.revoke(made.id)
    assert revoked.revoked_at is not None
    assert store.tokens.revoke(made.id) == revoked
    assert store.tokens.session("s1") is None
    with pytest.raises(NotFound):
        store.tokens.revoke("nope")


def test_signing_out_forgets_the_browser(store: Store, clock: Clock) -> None:
    made = store.tokens.add(token("ci"), "hash")
    for name in ("s1", "s2"):
        store.tokens.sign_in(name, made.identity, "", clock.time + timedelta(days=1))
    store.tokens.sign_out("s1")
    store.tokens.sign_out("s1")
    assert store.tokens.session("s1") is None
    assert store.tokens.session("s2") is not None
    with pytest.raises(NotFound):
        store.tokens.sign_in("s3", Identity(Kind.TOKEN, "gone"), "", clock.time)


def test_browsers_are_listed_by_who_they_are(store: Store, clock: Clock) -> None:
    made = store.tokens.add(token("ci"), "hash")
    ada = Identity(Kind.OIDC, "sub-1", "ada", RIGHTS)
    ends = clock.time + timedelta(days=1)
    for id, who in (("c0", made.identity), ("b0", made.identity), ("d0", ada)):
        store.tokens.sign_in(id, who, "10.0.0.9", ends)
    first = store.tokens.sessions(limit=2)
    second = store.tokens.sessions(first.next, 2)
    assert [each.id for each in (*first.items, *second.items)] == ["d0", "b0", "c0"]
    assert second.next is None
    assert [each.identity for each in first.items] == [ada, made.identity]
    assert (first.items[0].address, first.items[0].expires_at) == ("10.0.0.9", ends)
    assert store.tokens.session_named("b") == "b0"
    for none in ("x", "%", "_0"):
        with pytest.raises(NotFound):
            store.tokens.session_named(none)


def test_a_browser_that_a_provider_vouched_for_keeps_its_rights(store: Store, clock: Clock) -> None:
    ada = Identity(Kind.OIDC, "sub-1", "ada", RIGHTS)
    store.tokens.sign_in("s", ada, "", clock.time + timedelta(days=1))
    found = store.tokens.session("s")
    assert found is not None
    assert found.found is None
    assert found.identity == ada


def test_idle_and_expired_browsers_are_forgotten(store: Store, clock: Clock) -> None:
    made = store.tokens.add(token("ci"), "hash")
    now = clock.time
    for name, lives_s in (("busy", 9000), ("idle", 9000), ("over", 5)):
        store.tokens.sign_in(name, made.identity, "", now + timedelta(seconds=lives_s))
    clock.time = now + timedelta(seconds=1000)
    store.tokens.seen({"busy": clock.time, "gone": clock.time}, now + timedelta(seconds=500))
    assert [name for name in ("busy", "idle", "over") if store.tokens.session(name)] == ["busy"]
    busy = store.tokens.session("busy")
    assert busy is not None
    assert busy.seen_at == now + timedelta(seconds=1000)


def test_the_last_use_is_noted(store: Store) -> None:
    made = store.tokens.add(token("ci"), "hash")
    entries = store.audit.check().entries
    store.tokens.used({made.id: (TIME, "127.0.0.1"), "gone": (TIME, "")})
    used = store.tokens.get(made.id)
    assert (used.used_at, used.used_from) == (TIME, "127.0.0.1")
    assert store.audit.check().entries == entries  # which is no change


def test_no_secret_is_in_the_database(store: Store, url: str) -> None:
    """What is there proves a secret, and gives none away; the log has not even that."""
    secret = Secret.make()
    store.tokens.add(Token(secret.id, "ci", RIGHTS, ROOT, TIME), "argon2 of it")
    engine = create_engine(url)
    with engine.connect() as connection:
        everything = [
            str(row)
            for table in ("tokens", "audit", "events")
            for row in connection.execute(text(f"SELECT * FROM {table}"))
        ]
        audit = [str(row) for row in connection.execute(text("SELECT * FROM audit"))]
    engine.dispose()
    assert secret.id in "".join(audit)
    assert secret.secret not in "".join(everything)
    assert "argon2" not in "".join(audit)
    assert secret.secret not in repr(secret)

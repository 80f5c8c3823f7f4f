"""Tokens proven and revoked, and browsers that are signed in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.stores.databases import empty_database
from vmtune.errors import Forbidden, InvalidInput, NotFound, Unauthenticated
from vmtune.model.access.scopes import FULL, Identity, Kind, Scope
from vmtune.model.access.tokens import Secret
from vmtune.services.access import tokens as access_tokens
from vmtune.services.access.tokens import TokenService
from vmtune.services.access.users import LocalUsers
from vmtune.services.access.web_sessions import WebSessionService, key_of
from vmtune.storage import Store

ROOT = Identity(Kind.USER, "0", "root", FULL)


class Time:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 21, tzinfo=UTC)
        self.began = self.time

    def now(self) -> datetime:
        return self.time

    def seconds(self) -> float:
        return (self.time - self.began).total_seconds() + 1000

    def passes(self, **what: float) -> None:
        self.time += timedelta(**what)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def store(tmp_path: Path, time: Time) -> Iterator[Store]:
    url = empty_database(tmp_path / "s.db")
    with Store.open(url, now=time.now) as opened:
        yield opened


@pytest.fixture
def tokens(store: Store, time: Time) -> TokenService:
    return TokenService(store, LocalUsers(""), time.now, time.seconds)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The secrets that the slow check was made for."""
    made: list[str] = []
    check = access_tokens._verify

    def counted(hashed: str, secret: str) -> bool:
        made.append(secret)
        return check(hashed, secret)

    monkeypatch.setattr(access_tokens, "_verify", counted)
    return made


async def code(tokens: TokenService, text: str) -> str:
    with pytest.raises(Unauthenticated) as caught:
        await tokens.identify(text, "192.0.2.1")
    return caught.value.problems[0].code


async def test_the_slow_check_is_made_once_a_minute(
    tokens: TokenService, time: Time, checks: list[str]
) -> None:
    _, secret = await tokens.create(ROOT, "ci", ["read"])
    for _ in range(5):
        who = await tokens.identify(secret.text, "192.0.2.1")
    assert (who.kind, who.id, who.name) == (Kind.TOKEN, secret.id, "ci")
    assert len(checks) == 1
    time.passes(seconds=61)
    await tokens.identify(secret.text, "192.0.2.1")
    assert len(checks) == 2


async def test_many_at_once_share_one_check(tokens: TokenService, checks: list[str]) -> None:
    _, secret = await tokens.create(ROOT, "ci", ["read"])
    found = await asyncio.gather(*(tokens.identify(secret.text, "a") for _ in range(50)))
    assert len(found) == 50
    assert len(checks) == 1


async def test_revocation_takes_effect_at_once(tokens: TokenService, checks: list[str]) -> None:
    token, secret = await tokens.create(ROOT, "ci", ["read"])
    await tokens.identify(secret.text, "a")
    followed = tokens.changed
    await tokens.revoke(ROOT, token.id)
    assert followed.is_set()
    assert await code(tokens, secret.text) == "token_revoked"
    assert len(checks) == 1


async def test_a_wrong_secret_is_not_remembered_as_right(tokens: TokenService) -> None:
    _, secret = await tokens.create(ROOT, "ci", ["read"])
    wrong = Secret(secret.id, "A" * 43).text
    for _ in range(2):
        assert await code(tokens, wrong) == "token_unknown"
    assert (await tokens.identify(secret.text, "192.0.2.1")).id == secret.id
    assert await code(tokens, wrong) == "token_unknown"


async def test_rights_end_with_those_of_the_creators(tokens: TokenService, time: Time) -> None:
    ends = time.now() + timedelta(days=1)
    first, one = await tokens.create(ROOT, "one", ["admin"], expires_at=ends)
    by_first = await tokens.identify(one.text, "a")
    _, two = await tokens.create(by_first, "two", ["migrate"], hosts=["a"])
    by_second = await tokens.identify(two.text, "a")
    assert by_second.rights.allow(Scope.MIGRATE)
    assert not by_second.rights.allow(Scope.APPLY)
    assert by_second.expires_at == ends  # no later than its creator
    with pytest.raises(Forbidden, match="give away more"):
        await tokens.create(by_second, "three", ["apply"])
    with pytest.raises(Forbidden, match="give away more"):
        await tokens.create(by_second, "three", ["migrate"])  # also on host b
    time.passes(hours=25)
    assert await code(tokens, two.text) == "token_expired"
    assert (await tokens.get(ROOT, first.id)).id == first.id


async def test_the_creators_user_is_looked_at_each_time(
    tokens: TokenService, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = Identity(Kind.USER, "4711", "ada", FULL)
    _, secret = await tokens.create(ada, "ci", ["read"])
    may = True

    async def still_may(_self: LocalUsers, uid: int, name: str) -> bool:
        assert (uid, name) == (4711, "ada")
        return may

    monkeypatch.setattr(LocalUsers, "still_may", still_may)
    assert (await tokens.identify(secret.text, "a")).name == "ci"
    may = False
    assert await code(tokens, secret.text) == "creator_gone"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": "Bad Name"}, "name"),
        ({"scopes": ["root"]}, "scopes.0"),
        ({"scopes": []}, "scopes"),
        ({"hosts": ["../a"]}, "hosts"),
        ({"labels": {"a b": "c"}}, "labels"),
        ({"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "expires_at"),
    ],
)
async def test_what_cannot_be_a_token_is_refused(
    tokens: TokenService, given: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        await tokens.create(ROOT, **{"name": "ci", "scopes": ["read"], **given})  # type: ignore[arg-type] # the wrong ones too
    assert caught.value.problems[0].field.startswith(field)
    assert (await tokens.list(ROOT, None, 10)).items == ()


async def test_who_is_restricted_sees_its_own_tokens_alone(tokens: TokenService) -> None:
    other, _ = await tokens.create(ROOT, "other", ["read"])
    _, secret = await tokens.create(ROOT, "of-a", ["admin"], hosts=["a"])
    of_a = await tokens.identify(secret.text, "x")
    mine, _ = await tokens.create(of_a, "mine", ["read"], hosts=["a"])
    assert [t.id for t in (await tokens.list(of_a, None, 10)).items] == [mine.id]
    for attempt in (tokens.get, tokens.revoke):
        with pytest.raises(NotFound):
            await attempt(of_a, other.id)
    await tokens.revoke(of_a, mine.id)


async def test_the_last_use_is_stored_once_in_a_while(tokens: TokenService, time: Time) -> None:
    token, secret = await tokens.create(ROOT, "ci", ["read"])
    await tokens.identify(secret.text, "192.0.2.9")
    assert (await tokens.get(ROOT, token.id)).used_at is None
    await tokens.note_uses()
    used = await tokens.get(ROOT, token.id)
    assert (used.used_at, used.used_from) == (time.now(), "192.0.2.9")


# Browsers.


@pytest.fixture
def browsers(store: Store, tokens: TokenService, time: Time) -> WebSessionService:
    return WebSessionService(store, tokens, 30, time.now)


async def signed_out(browsers: WebSessionService, cookie: str) -> bool:
    try:
        await browsers.identify(cookie)
    except Unauthenticated:
        return True
    return False


async def test_a_browser_is_signed_out_when_idle(
    tokens: TokenService, browsers: WebSessionService, time: Time
) -> None:
    _, secret = await tokens.create(ROOT, "ci", ["read"])
    browser = await browsers.sign_in(secret.text, "a")
    for _ in range(4):
        time.passes(minutes=29)
        await browsers.drop_expired()
        again = await browsers.identify(browser.key)
        assert (again.identity.id, again.csrf) == (secret.id, browser.csrf)
    time.passes(minutes=29)
    await browsers.identify(browser.key, asks=False)  # which only follows
    time.passes(minutes=2)
    assert await signed_out(browsers, browser.key)
    time.passes(minutes=-10)
    assert await signed_out(browsers, browser.key)  # for good


async def test_a_browser_is_signed_out_after_half_a_day_or_with_its_token(
    tokens: TokenService, browsers: WebSessionService, time: Time
) -> None:
    ends = time.now() + timedelta(hours=1)
    for name, expires_at, lasts in (("long", None, 12), ("short", ends, 1)):
        _, secret = await tokens.create(ROOT, name, ["read"], expires_at=expires_at)
        browser = await browsers.sign_in(secret.text, "a")
        assert browser.expires_at - time.now() == timedelta(hours=lasts)
    began = time.time
    while time.time - began < timedelta(hours=1):
        assert not await signed_out(browsers, browser.key)
        time.passes(minutes=20)
    assert await signed_out(browsers, browser.key)


async def test_signing_out_and_revoking_end_it(
    tokens: TokenService, browsers: WebSessionService
) -> None:
    token, secret = await tokens.create(ROOT, "ci", ["read"])
    one, two, three = [await browsers.sign_in(secret.text, "a") for _ in range(3)]
    assert len({one.cookie, two.cookie, three.cookie, one.csrf, two.csrf}) == 5
    for half in (two.cookie, f"{two.cookie}.", key_of(two.cookie, one.csrf), f".{two.csrf}"):
        assert await signed_out(browsers, half)
    await browsers.sign_out(one.key)
    assert await signed_out(browsers, one.key)
    assert not await signed_out(browsers, two.key)
    await tokens.revoke(ROOT, token.id)
    assert await signed_out(browsers, two.key)


async def test_a_cookie_is_not_in_the_database(
    tokens: TokenService, browsers: WebSessionService, tmp_path: Path
) -> None:
    _, secret = await tokens.create(ROOT, "ci", ["read"])
    browser = await browsers.sign_in(secret.text, "a")
    kept = b"".join((tmp_path / f"s.db{end}").read_bytes() for end in ("", "-wal"))
    assert secret.id.encode() in kept
    for hidden in (secret.secret, browser.cookie, browser.csrf):
        assert hidden.encode() not in kept
        assert hidden not in repr(browser) + repr(secret)


ADA = Identity(Kind.OIDC, "ada", "ada l", FULL)


async def test_a_persons_token_lasts_as_long_as_the_setting_says(store: Store, time: Time) -> None:
    without = TokenService(store, LocalUsers(""), time.now, time.seconds)
    _, old = await without.create(ADA, "old", ["admin"])  # of an earlier version, without an end
    assert await code(without, old.text) == "creator_gone"
    week = timedelta(days=7)
    tokens = TokenService(store, LocalUsers(""), time.now, time.seconds, people_last=week)
    holder = await tokens.identify(old.text, "a")
    assert holder.expires_at == time.time + week
    _, child = await tokens.create(holder, "child", ["read"])
    far = time.time + timedelta(days=300)
    new, _ = await tokens.create(ADA, "new", ["read"], expires_at=far)
    assert new.expires_at == time.time + week
    soon, _ = await tokens.create(ADA, "soon", ["read"], expires_at=time.time + timedelta(hours=1))
    assert soon.expires_at == time.time + timedelta(hours=1)
    time.passes(days=7)
    for each in (old, child):
        assert await code(tokens, each.text) == "token_expired"


async def test_a_browser_of_a_person_needs_a_provider(store: Store, time: Time) -> None:
    tokens = TokenService(store, LocalUsers(""), time.now, time.seconds, timedelta(days=7))
    browsers = WebSessionService(store, tokens, 30, time.now)
    ada = await browsers.admit(ADA, "a")
    assert (await browsers.identify(ada.key)).identity == ADA
    tokens = TokenService(store, LocalUsers(""), time.now, time.seconds)
    with pytest.raises(Unauthenticated):
        await WebSessionService(store, tokens, 30, time.now).identify(ada.key)

"""Browsers that are signed in: by a cookie that no script can read, and a word that only the
service's own pages have.

Browsers send a cookie to all ports of a host, and so to whatever else listens there. The word is in
the page's storage, which belongs to one port. Neither proves anything without the other.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from vmtune.errors import Unauthenticated
from vmtune.model.access.scopes import Identity
from vmtune.services.access.tokens import TOKEN_UNKNOWN, CacheEntry, TokenService, utc_now
from vmtune.storage import Store
from vmtune.storage.paging import Page
from vmtune.storage.repositories.tokens import SignedIn, WebSession

_SECRET_BYTES = 32
_LONGEST = 100
_BETWEEN = "."
_MAX_REMEMBERED = 1000
_LASTS = timedelta(hours=12)


@dataclass(frozen=True, slots=True, repr=False)
class WebLogin:
    """A browser that is signed in.

    :param key: what proves it: the cookie and the word.
    """

    key: str
    identity: Identity
    expires_at: datetime

    @property
    def id(self) -> str:
        """Its public id. It reveals nothing of the cookie."""
        return _id(self.key)[:SHOWN]

    @property
    def cookie(self) -> str:
        """The part that the browser sends to every port of this host."""
        return self.key.partition(_BETWEEN)[0]

    @property
    def csrf(self) -> str:
        """The part that the service's own pages send with each request."""
        return self.key.partition(_BETWEEN)[2]


class WebSessionService:
    """Signs browsers in and out.

    :param idle_minutes: after which an idle browser is signed out.
    """

    def __init__(
        self,
        store: Store,
        tokens: TokenService,
        idle_minutes: int,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._idle = timedelta(minutes=idle_minutes)
        self._now = now
        self._seen: dict[str, datetime] = {}
        self._found: dict[str, CacheEntry[WebSession]] = {}

    async def sign_in(self, token: str, address: str) -> WebLogin:
        """Sign a browser in with a token.

        :raise Unauthenticated: the token is not valid.
        :raise TooManyAttempts: too many failed before it.
        """
        try:
            identity = await self._tokens.identify(token, address)
        except Unauthenticated as error:
            if not any(problem.code == TOKEN_UNKNOWN for problem in error.problems):
                self._tokens.count_refusal(address)  # it is right, and expired or revoked
            raise
        return await self.admit(identity, address)

    async def admit(self, identity: Identity, address: str) -> WebLogin:
        """Sign a browser in for an authenticated person."""
        now = self._now()
        expires_at = min(now + _LASTS, identity.expires_at or now + _LASTS)
        key = key_of(*(secrets.token_urlsafe(_SECRET_BYTES) for _ in range(2)))
        browser = WebLogin(key, identity, expires_at)
        id = _id(key)
        await asyncio.to_thread(self._store.tokens.sign_in, id, identity, address, expires_at)
        return browser

    async def identify(self, key: str, asks: bool = True) -> WebLogin:
        """The browser that sent *key*, as :func:`key_of` has it.

        :param asks: it sends a request now, and so is not idle.

        :raise Unauthenticated: it is not signed in, or no longer.
        """
        if len(key) > _LONGEST:
            raise _signed_out()
        id = _id(key)
        found = await self._find(id)
        now = self._now()
        if found is None or found.expires_at <= now:
            raise _signed_out()
        if now - max(found.seen_at, self._seen.get(id, found.seen_at)) > self._idle:
            await self._forget(id)
            raise _signed_out()
        identity = found.identity
        if found.found is not None:
            identity = await self._tokens.identity_of(found.found)
        elif not self._tokens.knows_people:
            raise _signed_out()
        if asks:
            self._seen[id] = now
        return WebLogin(key, identity, found.expires_at)

    async def _find(self, id: str) -> WebSession | None:
        known = self._found.get(id)
        now = self._now().timestamp()
        changed = self._tokens.changed
        if known is not None and known.holds(changed, now):
            return known.what
        found = await asyncio.to_thread(self._store.tokens.session, id)
        if found is not None:
            self._found[id] = CacheEntry(changed, now, found)
        while len(self._found) > _MAX_REMEMBERED:
            self._found.pop(next(iter(self._found)))
        return found

    async def sign_out(self, key: str) -> None:
        """The key is no longer valid."""
        await self._forget(_id(key))

    async def list(self, after: str | None, limit: int) -> Page[SignedIn]:
        """Browser sessions, by the names of their users."""
        await self.drop_expired()  # those that are over are not shown, and the others as of now
        return await asyncio.to_thread(self._store.tokens.sessions, after, limit)

    async def end(self, beginning: str) -> None:
        """Sign another browser out, given the prefix of its id: its cookie is invalid from now on.
        :raise NotFound: none is signed in.
        """
        await self._forget(await asyncio.to_thread(self._store.tokens.session_named, beginning))

    async def _forget(self, id: str) -> None:
        self._seen.pop(id, None)
        await asyncio.to_thread(self._store.tokens.sign_out, id)
        self._tokens.notify_changed()

    async def drop_expired(self) -> None:
        """Store when browsers asked last, and forget those that are over."""
        seen, self._seen = self._seen, {}
        await asyncio.to_thread(self._store.tokens.seen, seen, self._now() - self._idle)


SHOWN = 16
"""Characters of a browser's id that others see: enough to name it by."""


def key_of(cookie: str, word: str) -> str:
    """What proves a browser: both of what it sends."""
    return f"{cookie}{_BETWEEN}{word}"


def _id(key: str) -> str:
    # 512 random bits cannot be guessed, so no slow hash is needed.
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def _signed_out() -> Unauthenticated:
    return Unauthenticated(
        "this browser is not signed in, or no longer",
        field="Cookie",
        code="signed_out",
        remedy="sign in with a token",
    )

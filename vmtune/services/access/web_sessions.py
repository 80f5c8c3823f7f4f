"""Browsers that are signed in: a cookie that no script can read, and a second word that only
the service's own pages know."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from vmtune.errors import Unauthenticated
from vmtune.model.access.scopes import Identity
from vmtune.services.access.tokens import CacheEntry, TokenService, utc_now
from vmtune.storage import Store
from vmtune.storage.paging import Page
from vmtune.storage.repositories.tokens import SignedIn, WebSession

_COOKIE_BYTES = 32
_LONGEST_COOKIE = 64
_MOST_REMEMBERED = 1000
_LASTS = timedelta(hours=12)


@dataclass(frozen=True, slots=True, repr=False)
class WebLogin:
    """A browser that is signed in.

    :param cookie: what proves it; *csrf* is what its pages send with each change.
    """

    cookie: str
    identity: Identity
    expires_at: datetime

    @property
    def id(self) -> str:
        """Its public id. It reveals nothing of the cookie."""
        return _id(self.cookie)[:SHOWN]

    @property
    def csrf(self) -> str:
        """Derived from the cookie, so that it need not be stored; reveals nothing of it."""
        made = hmac.digest(self.cookie.encode(), b"vmtune csrf", hashlib.sha256)
        return base64.urlsafe_b64encode(made).decode().rstrip("=")


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
        return await self.admit(await self._tokens.identify(token, address), address)

    async def admit(self, identity: Identity, address: str) -> WebLogin:
        """Sign a browser in for an authenticated person."""
        now = self._now()
        expires_at = min(now + _LASTS, identity.expires_at or now + _LASTS)
        browser = WebLogin(secrets.token_urlsafe(_COOKIE_BYTES), identity, expires_at)
        id = _id(browser.cookie)
        await asyncio.to_thread(self._store.tokens.sign_in, id, identity, address, expires_at)
        return browser

    async def identify(self, cookie: str, asks: bool = True) -> WebLogin:
        """The browser that sent *cookie*.

        :param asks: it sends a request now, and so is not idle.

        :raise Unauthenticated: it is not signed in, or no longer.
        """
        if len(cookie) > _LONGEST_COOKIE:
            raise _signed_out()
        id = _id(cookie)
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
        if asks:
            self._seen[id] = now
        return WebLogin(cookie, identity, found.expires_at)

    async def _find(self, id: str) -> WebSession | None:
        known = self._found.get(id)
        now = self._now().timestamp()
        changed = self._tokens.changed
        if known is not None and known.holds(changed, now):
            return known.what
        found = await asyncio.to_thread(self._store.tokens.session, id)
        if found is not None:
            self._found[id] = CacheEntry(changed, now, found)
        while len(self._found) > _MOST_REMEMBERED:
            self._found.pop(next(iter(self._found)))
        return found

    async def sign_out(self, cookie: str) -> None:
        """The cookie is no longer valid."""
        await self._forget(_id(cookie))

    async def list(self, after: str | None, limit: int) -> Page[SignedIn]:
        """Browser sessions, by the names of their users."""
        await self.tidy()  # those that are over are not shown, and the others as of now
        return await asyncio.to_thread(self._store.tokens.sessions, after, limit)

    async def end(self, beginning: str) -> None:
        """Sign another browser out, given the prefix of its id: its cookie is invalid from now on.
        :raise NotFound: none is signed in.
        """
        await self._forget(await asyncio.to_thread(self._store.tokens.session_named, beginning))

    async def _forget(self, id: str) -> None:
        self._seen.pop(id, None)
        await asyncio.to_thread(self._store.tokens.sign_out, id)
        self._tokens.tell_changed()

    async def tidy(self) -> None:
        """Store when browsers asked last, and forget those that are over."""
        seen, self._seen = self._seen, {}
        await asyncio.to_thread(self._store.tokens.seen, seen, self._now() - self._idle)


SHOWN = 16
"""Characters of a browser's id that others see: enough to name it by."""


def _id(cookie: str) -> str:
    # 256 random bits cannot be guessed, so no slow hash is needed.
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()


def _signed_out() -> Unauthenticated:
    return Unauthenticated(
        "this browser is not signed in, or no longer",
        field="Cookie",
        code="signed_out",
        remedy="sign in with a token",
    )

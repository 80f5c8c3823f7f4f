"""Tokens: made, listed, revoked, and proven."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Generic, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from vmtune.errors import Forbidden, InvalidInput, Unauthenticated
from vmtune.model.access.scopes import Identity, Kind, Reach, Rights, check_scopes
from vmtune.model.access.tokens import Secret, Token, TokenState
from vmtune.model.profile import check_labels, check_name
from vmtune.services.access.guard import hidden
from vmtune.services.access.throttle import Throttle, key_of
from vmtune.services.access.users import LocalUsers
from vmtune.storage import Page, Store
from vmtune.storage.repositories.tokens import TokenAndSecret, no_token

# RFC 9106 has more for passwords; a secret of 256 random bits cannot be guessed anyway, and
# each first request of a minute waits for this.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
_AT_ONCE = 2
_REMEMBERED_S = 60.0
_HOLDS_S = 1.0
_T = TypeVar("_T")
_MOST_REMEMBERED = 1000
_FREE_ADDRESS, _FREE_TOKEN = 10, 20
_LONGEST_ADDRESS_S, _LONGEST_TOKEN_S = 60.0, 5.0  # a stranger must not lock a token's owner out


def utc_now() -> datetime:
    """The current time, with its zone."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class CacheEntry(Generic[_T]):
    """What the store had a moment ago.

    :param since: :attr:`TokenService.changed` of that time; *at* its clock.
    """

    since: asyncio.Event
    at: float
    what: _T

    def holds(self, changed: asyncio.Event, now: float) -> bool:
        """Whether no change is known, and the check is recent enough."""
        return self.since is changed and 0 <= now - self.at < _HOLDS_S


class TokenService:
    """Makes and checks tokens.

    A valid token is cached for a minute, by a keyed hash, which spares the slow check. A revocation
    takes effect at once in this service, and within a second in others that share the database.

    :param now: the time; *clock* counts seconds.
    """

    def __init__(
        self,
        store: Store,
        users: LocalUsers,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._users = users
        self._now = now
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._proven: OrderedDict[bytes, float] = OrderedDict()
        self._proving: dict[bytes, asyncio.Future[bool]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._by_address = Throttle(_FREE_ADDRESS, _LONGEST_ADDRESS_S, clock)
        self._by_token = Throttle(_FREE_TOKEN, _LONGEST_TOKEN_S, clock)
        self._found: dict[str, CacheEntry[TokenAndSecret]] = {}
        self._uses: dict[str, tuple[datetime, str]] = {}
        self.changed = asyncio.Event()
        """Set, and replaced, whenever rights may have been revoked."""

    # Making and revoking.

    async def create(
        self,
        by: Identity,
        name: str,
        scopes: Collection[str],
        hosts: Collection[str] | None = None,
        labels: Mapping[str, str] | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[Token, Secret]:
        """A new token and its secret, which cannot be shown again.

        :param hosts: it is valid for these alone, and their VMs; None for all.
        :param labels: it is valid for VMs with all of these.
        :param expires_at: None for never, or with *by*.
        :raise Forbidden: it would allow more than *by* may.
        :raise InvalidInput: an invalid scope, host or label, or a time in the past.
        :raise DuplicateName: there is a valid token of that name.
        """
        reach = Reach(
            None if hosts is None else frozenset(check_name(h, "hosts") for h in hosts),
            frozenset(check_labels(labels or {}).items()),
        )
        rights = Rights(check_scopes(scopes), reach)
        if not rights.is_within(by.rights):
            raise Forbidden(
                f"{by} cannot give away more than it may itself",
                field="scopes",
                code="beyond_own_rights",
                remedy="leave out what it does not have, or ask a holder of more rights",
            )
        now = self._now()
        if expires_at is not None and expires_at <= now:
            raise InvalidInput(
                "the token would have expired already",
                field="expires_at",
                remedy="name a later time",
            )
        if by.expires_at is not None:
            expires_at = min(expires_at or by.expires_at, by.expires_at)
        secret = Secret.make()
        creator = replace(by, expires_at=None)
        token = Token(secret.id, check_name(name), rights, creator, now, expires_at)
        hashed = await asyncio.to_thread(_HASHER.hash, secret.secret)
        added = await asyncio.to_thread(self._store.tokens.add, token, hashed)
        return added, secret

    async def list(self, by: Identity, after: str | None, limit: int) -> Page[Token]:
        """Tokens in the order of their names; without admin rights, those that the caller made."""
        page = await asyncio.to_thread(self._store.tokens.list, after, limit)
        return Page(tuple(t for t in page.items if _may_see(by, t)), page.next)

    async def get(self, by: Identity, id: str) -> Token:
        """:raise NotFound: there is no such token, or it is another's."""
        token = await asyncio.to_thread(self._store.tokens.get, id)
        if not _may_see(by, token):
            raise hidden(no_token(id))
        return token

    async def revoke(self, by: Identity, id: str) -> Token:
        """Revoke it from now on, and the tokens that it made.

        :raise NotFound: there is no such token, or it is another's.
        """
        await self.get(by, id)
        revoked = await asyncio.to_thread(self._store.tokens.revoke, id)
        self.tell_changed()
        return revoked

    def tell_changed(self) -> None:
        """Make subscribers check their rights again."""
        told, self.changed = self.changed, asyncio.Event()
        told.set()

    # Proving.

    async def identify(self, text: str, address: str) -> Identity:
        """The holder of the token *text*.

        :param address: from where it was sent.
        :raise Unauthenticated: it is not a token, or no longer valid.
        :raise TooManyAttempts: too many failed before it.
        """
        secret = Secret.read(text)
        digest = hmac.digest(self._key, text.encode("utf-8", "replace"), hashlib.sha256)
        if not self._is_remembered(digest) and not await self._prove(digest, secret, address):
            raise _no_token()
        assert secret is not None, "this is not one"
        found = await self._find(secret.id)
        if found is None:
            raise _no_token()
        identity = await self.identity_of(found)
        self._uses[secret.id] = (self._now(), address)
        return identity

    async def identity_of(self, found: TokenAndSecret) -> Identity:
        """The token's holder, with the rights that its creators still have.

        :raise Unauthenticated: it, or one of them, is no longer valid.
        """
        now = self._now()
        identity = found.token.identity
        for token in (found.token, *found.creators):
            state = token.state(now)
            if state is not TokenState.ACTIVE:
                which = "the token" if token is found.token else "the token that made this one"
                raise Unauthenticated(
                    f"{which} is {state.value}",
                    field="Authorization",
                    code=f"token_{state.value}",
                    remedy="request a new token",
                )
            ends = [t for t in (identity.expires_at, token.expires_at) if t is not None]
            identity = replace(
                identity,
                rights=identity.rights & token.rights,
                expires_at=min(ends, default=None),
            )
        first = (found.creators or (found.token,))[-1].creator
        if first.kind is Kind.USER:
            if not await self._users.still_may(int(first.id), first.name):
                raise Unauthenticated(
                    f"{first}, who made the token, may no longer use this service",
                    field="Authorization",
                    code="creator_gone",
                    remedy="request a new token from an authorized user",
                )
        return identity

    async def _find(self, id: str) -> TokenAndSecret | None:
        known = self._found.get(id)
        if known is not None and known.holds(self.changed, self._clock()):
            return known.what
        looked = self.changed, self._clock()  # before: a change meanwhile invalidates it
        found = await asyncio.to_thread(self._store.tokens.find, id)
        if found is not None:
            self._found[id] = CacheEntry(*looked, found)
        while len(self._found) > _MOST_REMEMBERED:
            self._found.pop(next(iter(self._found)))
        return found

    def _is_remembered(self, digest: bytes) -> bool:
        proven_at = self._proven.get(digest)
        return proven_at is not None and self._clock() - proven_at < _REMEMBERED_S

    async def _prove(self, digest: bytes, secret: Secret | None, address: str) -> bool:
        """Check the secret, once for all identical ones at the same time.

        :raise TooManyAttempts: too many failed before it.
        """
        proving = self._proving.get(digest)
        if proving is None:
            where = key_of(address)
            self._by_address.attempt(where)
            if secret is None:
                return False
            self._by_token.attempt(secret.id)
            proving = asyncio.ensure_future(self._check(digest, secret, where))
            self._proving[digest] = proving
            proving.add_done_callback(lambda _: self._proving.pop(digest))
        return await asyncio.shield(proving)

    async def _check(self, digest: bytes, secret: Secret, where: str) -> bool:
        found = await asyncio.to_thread(self._store.tokens.find, secret.id)
        if found is None:
            return False
        async with self._slots:  # each takes 19 MiB for as long as it runs
            right = await asyncio.to_thread(_verify, found.secret_hash, secret.secret)
        if right:
            self._by_address.succeeded(where)
            self._by_token.succeeded(secret.id)
            self._proven.pop(digest, None)
            self._proven[digest] = self._clock()
            while len(self._proven) > _MOST_REMEMBERED:
                self._proven.popitem(last=False)
        return right

    # Periodic task.

    async def note_uses(self) -> None:
        """Store when tokens were used last."""
        uses, self._uses = self._uses, {}
        if uses:
            await asyncio.to_thread(self._store.tokens.used, uses)


def _verify(hashed: str, secret: str) -> bool:
    try:
        return _HASHER.verify(hashed, secret)
    except (Argon2Error, InvalidHashError):
        return False


def _may_see(by: Identity, token: Token) -> bool:
    return by.rights.reach.is_everything or (token.creator.kind, token.creator.id) == (
        by.kind,
        by.id,
    )


def _no_token() -> Unauthenticated:
    return Unauthenticated(
        "this is no token of this service",
        field="Authorization",
        code="token_unknown",
        remedy="check that it was copied completely, or request a new one",
    )

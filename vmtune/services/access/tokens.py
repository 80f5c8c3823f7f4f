"""Tokens: made, listed, revoked, and proven."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
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
_HASHING = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="vmtune-hash")
"""Threads for that alone: each thread keeps the 19 MiB for its next time."""
_REMEMBERED_S = 60.0
_HOLDS_S = 1.0
_T = TypeVar("_T")
TOKEN_UNKNOWN = "token_unknown"  # noqa: S105 - a code, no secret
_MAX_REMEMBERED = 1000
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
    :param people_last: how long tokens of people are valid that an identity provider authenticated;
        None without a provider: then they are not.
    """

    def __init__(
        self,
        store: Store,
        users: LocalUsers,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = time.monotonic,
        people_last: timedelta | None = None,
    ) -> None:
        self._store = store
        self._people_last = people_last
        self._users = users
        self._now = now
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._proven: OrderedDict[bytes, float] = OrderedDict()
        self._once_right: OrderedDict[bytes, None] = OrderedDict()
        self._proving: dict[bytes, asyncio.Future[bool]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._looking = asyncio.Semaphore(_AT_ONCE)  # strangers' ids must not take all threads
        self._by_address = Throttle(_FREE_ADDRESS, _LONGEST_ADDRESS_S, clock)
        self._by_token = Throttle(_FREE_TOKEN, _LONGEST_TOKEN_S, clock)
        self._found: dict[str, CacheEntry[TokenAndSecret]] = {}
        self._uses: dict[str, tuple[datetime, str]] = {}
        self.changed = asyncio.Event()
        """Set, and replaced, whenever rights may have been revoked."""

    @property
    def knows_people(self) -> bool:
        """Whether there is an identity provider."""
        return self._people_last is not None

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
        if by.kind is Kind.OIDC and self._people_last is not None:
            latest = now + self._people_last
            expires_at = min(expires_at or latest, latest)
        if by.expires_at is not None:
            expires_at = min(expires_at or by.expires_at, by.expires_at)
        secret = Secret.make()
        creator = replace(by, expires_at=None)
        token = Token(secret.id, check_name(name), rights, creator, now, expires_at)
        loop = asyncio.get_running_loop()
        hashed = await loop.run_in_executor(_HASHING, _HASHER.hash, secret.secret)
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
        self.notify_changed()
        return revoked

    def count_refusal(self, address: str) -> None:
        """Count a refused sign-in that was no wrong token.

        :raise TooManyAttempts: too many failed before it.
        """
        self._by_address.attempt(key_of(address))

    def notify_changed(self) -> None:
        """Make subscribers check their rights again."""
        waiting, self.changed = self.changed, asyncio.Event()
        waiting.set()

    # Proving.

    async def identify(self, text: str, address: str) -> Identity:
        """The holder of the token *text*.

        :param address: from where it was sent.
        :raise Unauthenticated: it is not a token, or no longer valid.
        :raise TooManyAttempts: too many failed before it.
        """
        secret = Secret.read(text)
        # Keyed BLAKE2b (RFC 7693), which keeps Python's lock as hmac.digest does not: each request
        # would wait for it behind busy threads.
        sent = text.encode("utf-8", "replace")
        digest = hashlib.blake2b(sent, key=self._key, digest_size=32).digest()
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
        oldest = (found.creators or (found.token,))[-1]
        first = oldest.creator
        if first.kind is Kind.OIDC:
            identity = self._of_person(identity, oldest, now)
        if first.kind is Kind.USER:
            if not await self._users.still_may(int(first.id), first.name):
                raise Unauthenticated(
                    f"{first}, who made the token, may no longer use this service",
                    field="Authorization",
                    code="creator_gone",
                    remedy="request a new token from an authorized user",
                )
        return identity

    def _of_person(self, identity: Identity, oldest: Token, now: datetime) -> Identity:
        """*identity* for as long as a person's token may last, whatever it says itself: it may be
        older than the setting.

        :raise Unauthenticated: that is over.
        """
        if self._people_last is None:
            raise Unauthenticated(
                f"{oldest.creator} made the token, and no identity provider is configured",
                field="Authorization",
                code="creator_gone",
                remedy="request a new token from an authorized user",
            )
        ends = oldest.created_at + self._people_last
        if ends <= now:
            raise Unauthenticated(
                "the token is expired: those of people last as long as oidc.max_token_days says",
                field="Authorization",
                code="token_expired",
                remedy="sign in again and request a new token",
            )
        return replace(identity, expires_at=min(ends, identity.expires_at or ends))

    async def limit_person(self, subject: str, rights: Rights) -> None:
        """Revoke the tokens of a person that allow more than they now may, and sign their browsers
        out: the provider has just said what that is.

        :param subject: the provider's name of the person.
        :param rights: :data:`~vmtune.model.access.scopes.NONE` for nothing.
        """
        made = await asyncio.to_thread(self._store.tokens.made_by, Kind.OIDC, subject)
        excess = [token.id for token in made if not token.rights.is_within(rights)]
        for id in excess:
            await asyncio.to_thread(self._store.tokens.revoke, id)
        ended = await asyncio.to_thread(self._store.tokens.sign_out_beyond, subject, rights)
        if excess or ended:
            self.notify_changed()

    async def _find(self, id: str) -> TokenAndSecret | None:
        known = self._found.get(id)
        if known is not None and known.holds(self.changed, self._clock()):
            return known.what
        looked = self.changed, self._clock()  # before: a change meanwhile invalidates it
        found = await asyncio.to_thread(self._store.tokens.find, id)
        if found is not None:
            self._found[id] = CacheEntry(*looked, found)
        while len(self._found) > _MAX_REMEMBERED:
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
            proving = asyncio.ensure_future(self._check(digest, secret, key_of(address)))
            self._proving[digest] = proving
            proving.add_done_callback(lambda _: self._proving.pop(digest))
        return await asyncio.shield(proving)

    async def _check(self, digest: bytes, secret: Secret | None, where: str) -> bool:
        known = None
        if secret is not None:
            async with self._looking:
                known = await self._find(secret.id)
        if secret is None or known is None:
            self._by_address.attempt(where)
            return False
        # By its id, not by the address: who guesses there must not lock out the others who come
        # from there. Nor the token's holder, whose secret was right before.
        if digest not in self._once_right:
            self._by_token.attempt(secret.id)
        async with self._slots:  # each takes 19 MiB for as long as it runs
            loop = asyncio.get_running_loop()
            right = await loop.run_in_executor(_HASHING, _verify, known.secret_hash, secret.secret)
        if right:
            self._by_token.succeeded(secret.id)
            self._proven.pop(digest, None)
            self._proven[digest] = self._clock()
            self._once_right[digest] = None
            self._once_right.move_to_end(digest)
            for kept in (self._proven, self._once_right):
                while len(kept) > _MAX_REMEMBERED:
                    kept.popitem(last=False)
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
        "this is not a token of this service",
        field="Authorization",
        code=TOKEN_UNKNOWN,
        remedy="check that it was copied completely, or request a new one",
    )

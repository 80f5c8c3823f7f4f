"""Requests with an ``Idempotency-Key`` are executed once, however often they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from vmtune.errors import VmtuneError
from vmtune.model.access.scopes import Kind
from vmtune.model.idempotency import Claim, KeptAnswer
from vmtune.storage import Store
from vmtune.storage.claims import CLAIM, InHand

log = structlog.get_logger(__name__)
_Key = tuple[Kind, str, str]


class IdempotencyService:
    """The keys, in the database: they hold across restarts and for all services that share it."""

    def __init__(self, store: Store) -> None:
        self._keys = store.idempotency
        self._in_hand: dict[_Key, Claim] = {}

    async def claim(self, claim: Claim) -> KeptAnswer | str | None:
        """Take the key of a request.

        :return: None to carry the request out, in :meth:`carrying_out`, and then to :meth:`keep`
            its answer or :meth:`release` the key. Else it was already: its answer, or where that
            was lost, the id or name of what it began.
        :raise InvalidInput: the key came with another request before.
        :raise OperationInProgress: the same request is being executed.
        """
        key = _key(claim)
        first = self._in_hand.get(key)
        if first is not None:
            same = first.fingerprint == claim.fingerprint
            raise claim.in_progress() if same else claim.reused(first.action)
        self._in_hand[key] = claim
        found: KeptAnswer | str | None = ""
        try:
            found = await asyncio.to_thread(self._keys.claim, claim)
        finally:
            if found is not None:
                del self._in_hand[key]
        return found

    @contextmanager
    def carrying_out(self, claim: Claim) -> Iterator[None]:
        """What the block begins is noted with the key."""
        hand = InHand(claim)
        token = CLAIM.set(hand)
        try:
            yield
        finally:
            hand.is_open = False
            CLAIM.reset(token)

    async def keep(self, claim: Claim, answer: KeptAnswer) -> None:
        """Keep the answer. If it cannot be stored, the same request is answered with what it
        began."""
        await self._settle(claim, answer)

    async def release(self, claim: Claim) -> None:
        """The request was refused, or failed."""
        await self._settle(claim, None)

    async def _settle(self, claim: Claim, answer: KeptAnswer | None) -> None:
        try:
            if answer is not None:
                await asyncio.to_thread(self._keys.keep, claim, answer)
            else:
                await asyncio.to_thread(self._keys.release, claim)
        except VmtuneError as error:
            log.warning("an idempotency key is not settled", reason=error.message)
        finally:
            self._in_hand.pop(_key(claim), None)


def _key(claim: Claim) -> _Key:
    return claim.kind, claim.caller, claim.key

"""The audit log: results of requests, and reading it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager

import structlog

from vmtune.errors import VmtuneError
from vmtune.model.access.audit import Act, AuditSort, Entry, Integrity, Outcome
from vmtune.model.access.scopes import NOBODY
from vmtune.services.access.throttle import key_of
from vmtune.storage import Page, Store
from vmtune.storage.auditing import ACT
from vmtune.storage.repositories.audit_log import AuditFilter

log = structlog.get_logger(__name__)

_MINUTE_S = 60.0
_MAX_A_MINUTE = 30
_MAX_CALLERS = 200
_MAX_OF_STRANGERS = 300
_OTHERS = "others"


class AuditService:
    """Logs what was refused or failed; each change logs itself.

    Thirty refusals a minute and caller get an entry each, and 300 of all strangers together; the
    others are counted: repeated attempts must not fill the disk.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._since = clock()
        self._refused: dict[str, int] = {}
        self._strangers = 0

    @contextmanager
    def during(self, act: Act) -> Iterator[None]:
        """Have every change within the block noted as *act*."""
        token = ACT.set(act)
        try:
            yield
        finally:
            act.is_open = False
            ACT.reset(token)

    async def note(
        self, act: Act, outcome: Outcome, subject: str, status: int, codes: Sequence[str]
    ) -> None:
        """Log how a request ended. Never raises: the request is complete, and the service's log has
        what this one lacks."""
        if outcome is Outcome.REFUSED and not self._gets_entry(act):
            return
        try:
            await asyncio.to_thread(self._store.audit.add, act, outcome, subject, status, codes)
        except VmtuneError as error:
            log.error("not in the audit log", action=act.action, actor=str(act.actor),
                      outcome=outcome.value, status=status, reason=str(error))  # fmt: skip

    def _gets_entry(self, act: Act) -> bool:
        caller = act.actor.id
        if not caller:
            # An IPv6 customer has as many addresses as it likes: its network is one caller.
            caller = key_of(act.origin)
            self._strangers += 1
            known = caller in self._refused or len(self._refused) < _MAX_CALLERS
            if not known or self._strangers > _MAX_OF_STRANGERS:
                caller = _OTHERS
        count = self._refused[caller] = self._refused.get(caller, 0) + 1
        return count <= _MAX_A_MINUTE

    async def note_suppressed(self) -> None:
        """Note how many refusals of the last minute got no entry of their own."""
        if self._clock() - self._since < _MINUTE_S:
            return
        refused, self._refused = self._refused, {}
        self._strangers = 0
        self._since = self._clock()
        for caller, count in refused.items():
            if count > _MAX_A_MINUTE:
                act = Act(NOBODY, caller, "refused")
                subject = f"{count - _MAX_A_MINUTE} more attempts within a minute"
                await asyncio.to_thread(
                    self._store.audit.add, act, Outcome.REFUSED, subject, None, ()
                )

    async def list(
        self,
        wanted: AuditFilter,
        after: str | None,
        limit: int,
        sort: AuditSort = AuditSort.NEWEST,
    ) -> Page[Entry]:
        """Entries in the order *sort*."""
        return await asyncio.to_thread(self._store.audit.list, wanted, after, limit, sort)

    async def all(self, wanted: AuditFilter) -> AsyncIterator[Sequence[Entry]]:
        """All entries, oldest first, some at a time."""
        number = 0
        while batch := await asyncio.to_thread(self._store.audit.oldest_first, wanted, number):
            yield batch
            number = batch[-1].number


def check_log(store: Store) -> Integrity:
    """Whether the log is unaltered. It reads all of it: heavy work."""
    return store.audit.check()

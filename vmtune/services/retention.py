"""Retention: thins, then deletes what is old (vmtune.model.retention)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import structlog

from vmtune.model.access.audit import Act
from vmtune.model.access.scopes import SERVICE
from vmtune.model.retention import RetentionSettings
from vmtune.storage import Store
from vmtune.storage.repositories.retention import Old

log = structlog.get_logger(__name__)

TASK = "retention"
_EVERY_S = 3600.0
_ASK_EVERY_S = 300.0
_AT_ONCE_S = 1.0
"""For how long at once: other periodic tasks wait meanwhile."""
_PAGE = 50


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was thinned and deleted.

    :param thinned: migrations whose samples are thinned; *thinned_samples* were deleted.
    :param dropped: migrations whose samples, *dropped_samples*, were deleted.
    :param entries: of the audit log.
    :param vms: that are gone.
    :param keys: of requests; *deliveries* of webhooks; *forecasts* of migrations.
    """

    thinned: int = 0
    thinned_samples: int = 0
    dropped: int = 0
    dropped_samples: int = 0
    entries: int = 0
    vms: int = 0
    keys: int = 0
    deliveries: int = 0
    forecasts: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(
            self.thinned + other.thinned,
            self.thinned_samples + other.thinned_samples,
            self.dropped + other.dropped,
            self.dropped_samples + other.dropped_samples,
            self.entries + other.entries,
            self.vms + other.vms,
            self.keys + other.keys,
            self.deliveries + other.deliveries,
            self.forecasts + other.forecasts,
        )


@dataclass(frozen=True, slots=True)
class Expired:
    """What is older than its retention.

    :param thin: samples that would be thinned.
    :param entries: of the audit log.
    :param vms: that are gone.
    :param keys: of requests; *deliveries* of webhooks; *forecasts* of migrations.
    """

    thin: Old
    drop: Old
    entries: int
    vms: int
    keys: int
    deliveries: int
    forecasts: int


def utc_now() -> datetime:
    """The current time, with its zone."""
    return datetime.now(UTC)


def expired(
    store: Store, retention: RetentionSettings, now: Callable[[], datetime] = utc_now
) -> Expired:
    """What retention would delete now. Changes nothing. Blocks its thread."""
    until = retention.until(now())
    thin, drop = store.retention.old_samples(until.thin, until.drop)
    entries = store.retention.old_entries(until.audit) if until.audit else 0
    vms = store.retention.old_vms(until.gone_vms) if until.gone_vms else 0
    keys = store.idempotency.old(until.keys) if until.keys else 0
    deliveries = store.webhooks.old(until.deliveries) if until.deliveries else 0
    forecasts = store.forecasts.old(until.forecasts) if until.forecasts else 0
    return Expired(thin, drop, entries, vms, keys, deliveries, forecasts)


def prune(
    store: Store, retention: RetentionSettings, act: Act, now: Callable[[], datetime] = utc_now
) -> Iterator[Pruned]:
    """Thin and delete what is old, a short transaction at a time; yields what each one did.
    Blocks its thread. May be stopped after any of them, and repeated at any time.

    :param act: who deletes entries of the audit log.
    """
    until = retention.until(now())
    kept = store.retention
    if until.drop is not None:  # first: what goes need not be thinned
        for number in _each(partial(kept.to_drop, until.drop, _PAGE)):
            yield Pruned(dropped=1, dropped_samples=kept.drop(number))
    if until.thin is not None:
        for number in _each(partial(kept.to_thin, until.thin, _PAGE)):
            gone = kept.thin(number, retention.samples_thinned_s)
            yield Pruned(thinned=1, thinned_samples=gone)
    plain: tuple[tuple[datetime | None, Callable[[datetime], int], str], ...] = (
        (until.gone_vms, kept.drop_vms, "vms"),
        (until.keys, store.idempotency.forget, "keys"),
        (until.deliveries, store.webhooks.drop, "deliveries"),
        (until.forecasts, store.forecasts.drop, "forecasts"),
    )
    for before, drop, name in plain:
        while before is not None and (count := drop(before)):
            yield Pruned(**{name: count})
    if until.audit is not None:
        kept.cut_audit(until.audit, act)
    while count := kept.drop_entries():  # also those cut before, and not yet deleted
        yield Pruned(entries=count)


def _each(more: Callable[[], Iterable[int]]) -> Iterator[int]:
    """Each number that *more* gives, once; until it gives only numbers that already failed because
    others write there."""
    seen: set[int] = set()
    while fresh := [number for number in more() if number not in seen]:
        seen.update(fresh)
        yield from fresh


class RetentionService:
    """Applies retention once an hour, in one of the services on a database, a second at a time."""

    def __init__(
        self,
        store: Store,
        retention: RetentionSettings,
        *,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._retention = retention
        self._now = now
        self._clock = clock
        self._asked_s = -_ASK_EVERY_S
        self._work: Iterator[Pruned] | None = None
        self._done = Pruned()

    async def run(self) -> None:
        """Continue, or begin where an hour has passed. Called every few seconds."""
        if self._work is None:
            if self._clock() - self._asked_s < _ASK_EVERY_S:
                return
            self._asked_s = self._clock()
            begin = self._store.retention.begin_task
            if not await asyncio.to_thread(begin, TASK, _EVERY_S):
                return
            act = Act(SERVICE, "", "retention")
            self._work, self._done = prune(self._store, self._retention, act, self._now), Pruned()
        work, self._work = self._work, None  # after a failure, it is repeated in an hour
        if await asyncio.to_thread(self._continue, work):
            self._work = work
        elif self._done != Pruned():
            log.info("retention applied", **_counts(self._done))

    def _continue(self, work: Iterator[Pruned]) -> bool:
        """Whether there is more to do."""
        until_s = self._clock() + _AT_ONCE_S
        for step in work:
            self._done += step
            if self._clock() >= until_s:
                return True
        return False


def _counts(done: Pruned) -> dict[str, int]:
    return {
        "thinned_migrations": done.thinned,
        "thinned_samples": done.thinned_samples,
        "dropped_migrations": done.dropped,
        "dropped_samples": done.dropped_samples,
        "dropped_entries": done.entries,
        "dropped_vms": done.vms,
        "forgotten_keys": done.keys,
        "dropped_deliveries": done.deliveries,
        "dropped_forecasts": done.forecasts,
    }

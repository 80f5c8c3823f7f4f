"""Watches histories: keeps the changes that are found, and what people make of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from uuid import NAMESPACE_OID, UUID, uuid5

from vmtune.bench.model.metrics.table import PRIMARY
from vmtune.bench.model.trend.change import FoundChange, Triage
from vmtune.bench.services.comparisons.history import HistoryService
from vmtune.bench.services.comparisons.setup_history import SetupHistory, Shift
from vmtune.errors import NotFound
from vmtune.storage import Store

METRICS_WATCHED = tuple(dict.fromkeys((*PRIMARY.values(), "downtime_ms")))
"""Each kind's own primary metric, and the downtime."""
_TASK = "histories"
_EVERY_S = 900.0
_MOST = 500


class TrendService:
    """Looks at the histories of scenarios that have new runs, every 15 minutes, in one of the
    services on a database."""

    def __init__(self, store: Store, history: HistoryService) -> None:
        self._store = store
        self.history = history
        self._seen = 0

    async def run(self) -> None:
        """Look where it is time. Called every few seconds."""
        if await asyncio.to_thread(self._store.retention.begin_task, _TASK, _EVERY_S):
            await self.look()

    async def look(self) -> None:
        """Look at all scenarios that have runs since the last look, and keep what is found."""
        scenarios, newest = await asyncio.to_thread(self._store.found_changes.recent, self._seen)
        for scenario in scenarios:
            for metric in METRICS_WATCHED:
                try:
                    found = await self.history.history(scenario, metric)
                except NotFound:
                    continue
                for setup in found.strands:
                    await asyncio.to_thread(self._keep, scenario, metric, setup)
        self._seen = newest

    def _keep(self, scenario: str, metric: str, setup: SetupHistory) -> None:
        if setup.changes is None:
            return
        there = set()
        for shift in setup.changes:
            kept = shift.found
            if not shift.matters and kept is None:
                continue
            now = replace(
                kept or _new(scenario, metric, setup.id, shift),
                run=shift.run,
                since=shift.since,
                kind=shift.kind,
                text=shift.text,
                worse=shift.worse,
            )
            there.add(now.id)
            if now != kept:
                self._store.found_changes.keep(now)
        gone = [
            each.id
            for each in self._store.found_changes.of(scenario, metric)
            if each.setup == setup.id and each.id not in there
        ]
        if gone:
            self._store.found_changes.forget(gone)

    async def changes(self, triage: Collection[Triage], limit: int) -> tuple[FoundChange, ...]:
        """Kept changes, the latest first."""
        return await asyncio.to_thread(self._store.found_changes.list, triage, min(limit, _MOST))

    async def triage(self, id: UUID, triage: Triage, note: str, by: str) -> FoundChange:
        """Note what somebody decided about a change.

        :raise NotFound: there is no such change.
        """
        return await asyncio.to_thread(self._store.found_changes.triage, id, triage, note, by)


def _new(scenario: str, metric: str, setup: str, shift: Shift) -> FoundChange:
    return FoundChange(
        id=uuid5(NAMESPACE_OID, f"{scenario} {metric} {setup} {shift.run} {shift.kind}"),
        scenario=scenario,
        metric=metric,
        setup=setup,
        run=shift.run,
        since=shift.since,
        kind=shift.kind,
        text=shift.text,
        worse=shift.worse,
        found_at=datetime.now(UTC),
    )

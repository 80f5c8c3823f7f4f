"""Runs that were measured, put into a store without measuring."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from vmtune.bench.model.runs.run import Run, RunState, Slot
from vmtune.storage import Store

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
PLACE: Mapping[str, Any] = {"cpu": {"count": 2}, "qemu": {"version": "10.0.2"}}
_IDS = UUID(int=77)


def put(
    store: Store,
    name: str,
    values: Sequence[float],
    *,
    scenario: str = "q/busy",
    profile: str = "",
    metric: str = "total_time_ms",
    environment: Mapping[str, Any] = PLACE,
    fingerprint: str = "here",
    campaign: UUID | None = None,
    states: Mapping[int, RunState] | None = None,
    tunables: Mapping[str, Any] | None = None,
    more: Mapping[str, float] | None = None,
    after: int = 0,
) -> list[Run]:
    """A run for each value, in their order; *name* is the arm where there is a campaign.

    :param after: how many minutes later they were made.
    :param states: by index, where it is not completed.
    """
    made = []
    for index, value in enumerate(values):
        state = (states or {}).get(index, RunState.COMPLETED)
        at = BEGAN + timedelta(minutes=after + index)
        run = Run(
            id=uuid5(
                _IDS, f"{campaign}/{name}/{scenario}/{index}" + (f"/{after}" if after else "")
            ),
            scenario=scenario,
            setup={},
            values=tunables or {},
            state=state,
            created_at=at,
            started_at=at,
            ended_at=at + timedelta(seconds=30),
            profile=profile,
            revision=1 if profile else 0,
            qemu="system",
            host="h",
            slot=Slot(campaign, name, index + 1, 1) if campaign else None,
            fingerprint=fingerprint,
            environment=environment,
            metrics={} if state is RunState.FAILED else {metric: value, **(more or {})},
            failure="the destination died" if state is RunState.FAILED else "",
        )
        made.append(store.runs.add(run))
    return made


def noisy(middle: float, size: int, seed: int, noise: float = 0.05) -> list[float]:
    """Values as runs give them."""
    drawn = random.Random(seed)
    return [round(middle * drawn.lognormvariate(0, noise), 3) for _ in range(size)]

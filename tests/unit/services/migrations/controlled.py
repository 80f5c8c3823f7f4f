"""What tests of the reaper and of steps share."""

from __future__ import annotations

from typing import Any

from tests.support.simulated.world import World
from vmtune.model.migration.controller_record import StepEffect
from vmtune.model.migration.record import Migration

REAPED: dict[str, Any] = {"reaper_policy": "predict", "reaper_max_interval_ms": 60}
AT_ONCE = {"after_iterations": 0}


def step(**then: Any) -> dict[str, object]:
    return {"when": AT_ONCE, "then": then}


async def begin(it: World, profile: str | None = "p", **fields: Any) -> Migration:
    """Start a migration that does not converge, with a profile."""
    return await it.begin(profile, **fields)


async def until_done(it: World, record: Migration, steps: int = 1) -> None:
    """Until so many steps have been done."""

    def done() -> bool:
        found = it.store.migrations.get(record.id).step_records
        return sum(r.effect is not StepEffect.PENDING for r in found) >= steps

    await it.until(done)


async def finish(it: World, record: Migration) -> Migration:
    """Let the migration converge."""
    it.source.parameters["max-bandwidth"] = 0
    return await it.ended(record)

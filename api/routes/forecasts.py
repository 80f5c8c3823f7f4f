"""Forecasts that are kept with their migrations, and what came of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from vmtune.api.auth.reach import MigrationInReach
from vmtune.api.auth.security import READ, Who
from vmtune.api.http.kept_answers import STORED
from vmtune.api.responses import KEPT, problems
from vmtune.api.routes.common import Moment, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.forecast_checks import ForecastCheck, KeptForecasts

router = Router(tags=["forecasts"])
_MOST = 5000


@router.get("/forecasts/check", responses=problems() | KEPT, dependencies=[READ, STORED])
async def check_forecasts(
    on: Services,
    who: Who,
    profile: Annotated[
        str | None, Query(description="Only of migrations with this profile; empty for without.")
    ] = None,
    host: Annotated[str | None, Query(description="Source or destination.")] = None,
    since: Annotated[Moment | None, Query(description="Ended then or later.")] = None,
) -> ForecastCheck:
    """Compare forecasts with what happened: their errors, how often their bounds held, and whether
    what was to end did; by profile, hosts and week. Next to it: what users have without."""
    held = await on.queries.held_forecasts(profile, host, since, _MOST + 1, who.rights.reach)
    return ForecastCheck.of(held, _MOST)


@router.get(
    "/migrations/{migration}/forecasts", responses=problems(404) | KEPT, dependencies=[READ, STORED]
)
async def list_migration_forecasts(on: Services, migration: MigrationInReach) -> KeptForecasts:
    """The forecasts of a migration, and what came of them; or why none was made before it."""
    kept = await on.queries.migration_forecasts(migration.id)
    left_out = on.migrations.intents.forecasts.left_out(migration.id)
    return KeptForecasts.of(kept, left_out)

"""How the service is."""

from __future__ import annotations

from vmtune import __version__
from vmtune.api.auth.security import READ
from vmtune.api.responses import problems
from vmtune.api.routes.common import Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.common import problems_of
from vmtune.api.schemas.health import Health, HealthStatus

router = Router(tags=["health"])


@router.get("/health", responses=problems(), dependencies=[READ])
async def get_health(on: Services) -> Health:
    """Health of the service: version, schema and load."""
    problems_now = await on.queries.why_not_writable()
    return Health(
        status=HealthStatus.DEGRADED if problems_now else HealthStatus.OK,
        problems=problems_of(problems_now),
        version=__version__,
        schema_revision=on.queries.schema_revision,
        jobs_running=await on.queries.migrations_running(),
        postcopy_paused=await on.queries.migrations_postcopy_paused(),
        hosts=await on.inventory.host_count(),
    )

"""The services that share the work."""

from __future__ import annotations

from vmtune.api.auth.reach import EVERYWHERE
from vmtune.api.auth.security import READ
from vmtune.api.responses import problems
from vmtune.api.routes.common import Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.cluster import ServiceList, ServiceView

router = Router(prefix="/services", tags=["services"])


@router.get("", responses=problems(), dependencies=[READ, EVERYWHERE])
async def list_services(on: Services) -> ServiceList:
    """The services that share a PostgreSQL database, and the hosts that each manages. Empty
    for a single service."""
    if on.cluster is None:
        return ServiceList(items=[])
    hosts = await on.hosts.all()
    shown = [
        ServiceView.of(one, on.cluster.name, [h.name for h in hosts if h.owner == one.name])
        for one in await on.cluster.services()
    ]
    return ServiceList(items=shown)

"""The table of tunables."""

from __future__ import annotations

from vmtune.api.auth.security import READ
from vmtune.api.responses import problems
from vmtune.api.routes.common import After, Limit, Name, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.tunables import TunablePage, TunableView
from vmtune.errors import NotFound
from vmtune.model.tunables.rules import unknown_tunable
from vmtune.model.tunables.tunable import Route, Side

router = Router(prefix="/tunables", tags=["tunables"])


@router.get("", responses=problems(), dependencies=[READ])
async def list_tunables(
    on: Services,
    route: Route | None = None,
    side: Side | None = None,
    limit: Limit = 200,
    after: After = None,
) -> TunablePage:
    """All tunables: description, accepted values, and route to QEMU."""
    page = on.queries.tunables(route, side, after, limit)
    return TunablePage(items=[TunableView.of(row) for row in page.items], next=page.next)


@router.get("/{name}", responses=problems(404), dependencies=[READ])
async def get_tunable(on: Services, name: Name) -> TunableView:
    """One tunable."""
    row = on.tunables.get(name)
    if row is None:
        problem = unknown_tunable(name, "name", on.tunables)
        raise NotFound(problem.message, problems=[problem])
    return TunableView.of(row)

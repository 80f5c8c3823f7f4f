"""The fleet at a glance, what is done in it, and one search over all of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from vmtune.api.auth.security import READ, Who
from vmtune.api.http.kept_answers import STORED
from vmtune.api.responses import KEPT, problems
from vmtune.api.routes.common import Services, Whole
from vmtune.api.routes.router import Router
from vmtune.api.schemas.overview import (
    Activities,
    ActivityView,
    FoundView,
    OverviewView,
    SearchResults,
)

router = Router(tags=["overview"])


@router.get("/overview", responses=problems() | KEPT, dependencies=[READ, STORED])
async def get_overview(on: Services, who: Who) -> OverviewView:
    """What needs attention, all hosts by load and state, and the migrations of the last 24 hours.
    No host is asked."""
    return OverviewView.of(await on.overview.glance(who.rights.reach))


@router.get("/activity", responses=problems() | KEPT, dependencies=[READ, STORED])
async def list_activity(
    on: Services,
    who: Who,
    limit: Annotated[Whole, Query(ge=1, le=100, description="Most items.")] = 30,
) -> Activities:
    """Migrations, applications, evacuations, campaigns and runs: those that run, then those that
    ended last."""
    found = await on.overview.activities(who, limit)
    return Activities(items=[ActivityView.from_record(each) for each in found])


@router.get("/search", responses=problems() | KEPT, dependencies=[READ, STORED])
async def search(
    on: Services,
    who: Who,
    q: Annotated[
        str,
        Query(
            max_length=200,
            description="A part of a name, whatever the case, or the beginning of a UUID.",
        ),
    ],
    limit: Annotated[Whole, Query(ge=1, le=50, description="Most items of each kind.")] = 5,
) -> SearchResults:
    """Find VMs, hosts, profiles, migrations, campaigns and runs. Of migrations and runs the newest
    5,000 are looked at, unless the UUID is given."""
    found = await on.overview.find(q, limit, who.rights.reach)
    return SearchResults(items=[FoundView.from_record(each) for each in found])

"""Changes of metrics over time, their triage, and campaigns that run again and again."""

from __future__ import annotations

import asyncio
from typing import Annotated
from uuid import UUID

from fastapi import Path, Query, Response

from vmtune.api.auth.reach import EVERYWHERE
from vmtune.api.auth.security import BENCH, READ, Who
from vmtune.api.http.bodies import LARGE_BODY
from vmtune.api.http.idempotency import KEYED, keyed
from vmtune.api.responses import ASKS_A_HOST, LOCATION, WITH_BODY, problems, saved_as, with_headers
from vmtune.api.routes.common import PREFIX, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.bench.comparisons import FoundChangePage, FoundChangeView, TriageOrder
from vmtune.api.schemas.bench.trends import ScheduleCreate, ScheduleList, ScheduleView
from vmtune.api.wiring.deps import Container
from vmtune.api.wiring.loads import check_may_load
from vmtune.bench.model.trend.change import Triage
from vmtune.bench.services.comparisons.exporting import history_csv
from vmtune.model.idempotency import Begun

router = Router(tags=["histories"], dependencies=[EVERYWHERE])


class _File(Response):
    media_type = "text/csv"


@router.get("/history/export", responses=problems(404), response_class=_File, dependencies=[READ])
async def export_history(
    on: Services,
    scenario: Annotated[str, Query(max_length=200)],
    metric: Annotated[str, Query(max_length=100)] = "total_time_ms",
    setup: Annotated[
        str, Query(max_length=8, description="Id of a setup; default: the one with most runs.")
    ] = "",
) -> Response:
    """The history of one setup as CSV, a run on each line: `time`, `run`, `environment` and the
    metric. Apache Otava reads it."""
    found = await on.history.setup(scenario, metric, setup)
    file = await asyncio.to_thread(history_csv, scenario, metric, found)
    return Response(file.content, media_type="text/csv", headers=saved_as(file.name))


@router.get("/changes", responses=problems(), dependencies=[READ])
async def list_changes(
    on: Services,
    triage: Annotated[list[Triage], Query(description="Any of these; default: all.")] = [],  # noqa: B006 - FastAPI copies it
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> FoundChangePage:
    """Changes that were found in histories, the latest first. The service looks every 15 minutes
    at scenarios with new runs: at the primary metric of their kind, and at the downtime."""
    found = await on.trends.changes(tuple(triage), limit)
    return FoundChangePage(items=[FoundChangeView.from_record(each) for each in found], next=None)


@router.post("/changes/look", responses=problems(409), dependencies=[BENCH, KEYED])
async def look_for_changes(on: Services) -> FoundChangePage:
    """Look at all scenarios with new runs now; answers with the changes that are not triaged."""
    await on.trends.look()
    found = await on.trends.changes((Triage.OPEN,), 500)
    return FoundChangePage(items=[FoundChangeView.from_record(each) for each in found], next=None)


@router.put("/changes/{change}/triage", responses=problems(*WITH_BODY, 404), dependencies=[BENCH])
async def triage_change(on: Services, who: Who, change: UUID, body: TriageOrder) -> FoundChangeView:
    """Decide about a change: `known`, `accepted` or `to_fix`, with a note; `open` takes the
    decision back."""
    found = await on.trends.triage(change, body.triage, body.note, who.name or who.id)
    return FoundChangeView.from_record(found)


@router.get("/schedules", responses=problems(), dependencies=[READ])
async def list_schedules(on: Services) -> ScheduleList:
    """Campaigns that are started again and again, by name."""
    return ScheduleList(items=[ScheduleView.of(each) for each in await on.schedules.list()])


async def _begun(on: Container, name: str) -> ScheduleView:
    found = {each.name: each for each in map(ScheduleView.of, await on.schedules.list())}
    return found[name]


@router.post(
    "/schedules",
    status_code=201,
    responses=problems(*WITH_BODY, *ASKS_A_HOST, 409) | with_headers(201, LOCATION),
    dependencies=[BENCH, LARGE_BODY, keyed(Begun.SCHEDULE, _begun, "/schedules/{id}")],
)
async def create_schedule(
    on: Services, who: Who, body: ScheduleCreate, response: Response
) -> ScheduleView:
    """Start a campaign every so often: one at a time, and never while a migration or evacuation is
    under way. When one begins, the run that is under way is cancelled and repeated later."""
    check_may_load(who, body.campaign)
    made = ScheduleView.of(await on.schedules.add(body.every, body.campaign))
    response.headers["Location"] = f"{PREFIX}/schedules/{made.name}"
    return made


@router.delete("/schedules/{name}", status_code=204, responses=problems(404), dependencies=[BENCH])
async def delete_schedule(on: Services, name: Annotated[str, Path(max_length=200)]) -> None:
    """Start it no more. A campaign under way continues."""
    await on.schedules.remove(name)

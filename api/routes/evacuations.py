"""Evacuations: planned, started, followed, paused, resumed, cancelled."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from fastapi import Query, Response

from vmtune.api.auth.reach import WholeHostInReach
from vmtune.api.auth.security import MIGRATE, READ, Who
from vmtune.api.http.bodies import LARGE_BODY
from vmtune.api.http.idempotency import KEYED, keyed
from vmtune.api.responses import ASKS_A_HOST, LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, After, Limit, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.evacuations import (
    EvacuationCreate,
    EvacuationPage,
    EvacuationPlanView,
    EvacuationView,
    EvacuationVmPage,
    EvacuationVmView,
)
from vmtune.api.wiring.deps import Container
from vmtune.model.evacuation.evacuation import EvacuationState
from vmtune.model.idempotency import Begun
from vmtune.services.evacuations.plan import EvacuationRequest

router = Router(tags=["evacuations"])
_OF_HOST = "/hosts/{name}/evacuations"
States = Annotated[list[EvacuationState], Query(description="Any of these states.")]


@router.get("/evacuations", responses=problems(), dependencies=[READ])
async def list_evacuations(
    on: Services,
    who: Who,
    state: States = [],  # noqa: B006 - FastAPI copies it
    limit: Limit = 50,
    after: After = None,
) -> EvacuationPage:
    """Evacuations of all hosts, newest first."""
    reach = who.rights.reach
    if reach.labels:  # an evacuation is of all VMs of a host
        return EvacuationPage(items=[], next=None)
    page = await on.evacuations.list(None, tuple(state), after, limit, reach)
    return EvacuationPage(items=[EvacuationView.of(each) for each in page.items], next=page.next)


@router.get(_OF_HOST, responses=problems(403, 404), dependencies=[READ])
async def list_host_evacuations(
    on: Services,
    name: WholeHostInReach,
    state: States = [],  # noqa: B006 - FastAPI copies it
    limit: Limit = 50,
    after: After = None,
) -> EvacuationPage:
    """Evacuations of a host, newest first."""
    await on.hosts.get(name)
    page = await on.evacuations.list(name, tuple(state), after, limit)
    return EvacuationPage(items=[EvacuationView.of(each) for each in page.items], next=page.next)


async def _begun(on: Container, id: str) -> EvacuationView:
    return EvacuationView.of(await on.evacuations.get(None, UUID(id)))


@router.post(
    _OF_HOST,
    status_code=202,
    responses=problems(*WITH_BODY, *ASKS_A_HOST) | with_headers(202, LOCATION),
    dependencies=[
        MIGRATE,
        LARGE_BODY,
        keyed(Begun.EVACUATION, _begun, f"{_OF_HOST}/{{id}}"),
    ],
)
async def start_evacuation(
    on: Services,
    who: Who,
    name: WholeHostInReach,
    response: Response,
    body: EvacuationCreate | None = None,
) -> EvacuationView:
    """Start an evacuation: move all VMs of a host to other hosts. It is a job that survives
    restarts of the service. VMs with blockers are not moved; they are listed with the reason."""
    status = await on.evacuations.start(_asked(on, who, name, body))
    host, id = quote(name, safe=""), status.record.id
    response.headers["Location"] = f"{PREFIX}/hosts/{host}/evacuations/{id}"
    return EvacuationView.of(status)


@router.post(
    f"{_OF_HOST}/plan",
    responses=problems(*WITH_BODY, *ASKS_A_HOST),
    dependencies=[READ, LARGE_BODY],
)
async def plan_evacuation(
    on: Services, who: Who, name: WholeHostInReach, body: EvacuationCreate | None = None
) -> EvacuationPlanView:
    """Plan an evacuation: destinations and preflight findings of each VM. Changes nothing."""
    return EvacuationPlanView.of(await on.evacuations.plan(_asked(on, who, name, body)))


def _asked(on: Services, who: Who, name: str, body: EvacuationCreate | None) -> EvacuationRequest:
    wanted = body or EvacuationCreate()
    for destination in wanted.destinations:
        on.access.guard.host(who, destination)
    return wanted.asked(name, who.rights.reach.hosts)


@router.get(f"{_OF_HOST}/{{evacuation}}", responses=problems(403, 404), dependencies=[READ])
async def get_evacuation(on: Services, name: WholeHostInReach, evacuation: UUID) -> EvacuationView:
    """One evacuation and its progress."""
    return EvacuationView.of(await on.evacuations.get(name, evacuation))


@router.get(f"{_OF_HOST}/{{evacuation}}/vms", responses=problems(403, 404), dependencies=[READ])
async def list_leaving_vms(
    on: Services,
    name: WholeHostInReach,
    evacuation: UUID,
    limit: Limit = 50,
    after: After = None,
) -> EvacuationVmPage:
    """The VMs of an evacuation in order of migration, with their states."""
    page = await on.evacuations.vms(name, evacuation, after, limit)
    return EvacuationVmPage(items=[EvacuationVmView.of(vm) for vm in page.items], next=page.next)


@router.delete(
    f"{_OF_HOST}/{{evacuation}}",
    status_code=202,
    responses=problems(403, 404, 409),
    dependencies=[MIGRATE],
)
async def cancel_evacuation(
    on: Services, name: WholeHostInReach, evacuation: UUID
) -> EvacuationView:
    """Cancel an evacuation: running migrations are aborted, waiting VMs are not migrated."""
    return EvacuationView.of(await on.evacuations.cancel(name, evacuation))


@router.post(
    f"{_OF_HOST}/{{evacuation}}/pause",
    responses=problems(403, 404, 409),
    dependencies=[MIGRATE, KEYED],
)
async def pause_evacuation(
    on: Services, name: WholeHostInReach, evacuation: UUID
) -> EvacuationView:
    """Pause an evacuation: start no more migrations. Running migrations continue."""
    return EvacuationView.of(await on.evacuations.pause(name, evacuation))


@router.post(
    f"{_OF_HOST}/{{evacuation}}/resume",
    responses=problems(403, 404, 409),
    dependencies=[MIGRATE, KEYED],
)
async def resume_evacuation(
    on: Services, name: WholeHostInReach, evacuation: UUID
) -> EvacuationView:
    """Resume a paused evacuation."""
    return EvacuationView.of(await on.evacuations.resume(name, evacuation))

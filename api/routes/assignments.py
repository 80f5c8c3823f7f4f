"""Which profile is for which VM."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from vmtune.api.responses import LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, After, Limit, Services
from vmtune.api.schemas.assignments import AssignmentCreate, AssignmentPage, AssignmentView
from vmtune.api.security import PROFILE, READ

router = APIRouter(prefix="/assignments", tags=["assignments"])
Number = Annotated[int, Path(ge=1, le=2**63 - 1)]


@router.get("", responses=problems(), dependencies=[READ])
async def list_assignments(
    on: Services, profile: str | None = None, limit: Limit = 50, after: After = None
) -> AssignmentPage:
    """Assignments in the order in which they were made."""
    page = await on.queries.assignments(profile, after, limit)
    return AssignmentPage(items=[AssignmentView.of(a) for a in page.items], next=page.next)


@router.post(
    "",
    status_code=201,
    responses=problems(*WITH_BODY, 404, 409) | with_headers(201, LOCATION),
    dependencies=[PROFILE],
)
async def assign(on: Services, body: AssignmentCreate, response: Response) -> AssignmentView:
    """Assign a profile to a VM, a label selector, a host, or everything else."""
    added = await on.assignments.add(body.target, body.key, body.profile)
    response.headers["Location"] = f"{PREFIX}/assignments/{added.id}"
    return AssignmentView.of(added)


@router.get("/{number}", responses=problems(404), dependencies=[READ])
async def get_assignment(on: Services, number: Number) -> AssignmentView:
    """One assignment."""
    return AssignmentView.of(await on.queries.assignment(number))


@router.delete("/{number}", status_code=204, responses=problems(404), dependencies=[PROFILE])
async def unassign(on: Services, number: Number) -> None:
    """Remove an assignment. VMs keep what was applied to them."""
    await on.assignments.remove(number)

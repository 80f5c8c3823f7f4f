"""Which profile is for which VM."""

from __future__ import annotations

from fastapi import Response

from vmtune.api.auth.reach import AssignmentInReach
from vmtune.api.auth.security import PROFILE, READ, Who
from vmtune.api.http.idempotency import keyed
from vmtune.api.responses import LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, After, Limit, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.assignments import AssignmentCreate, AssignmentPage, AssignmentView
from vmtune.api.wiring.deps import Container
from vmtune.errors import TiedAssignments
from vmtune.model.idempotency import Begun

router = Router(prefix="/assignments", tags=["assignments"])


@router.get("", responses=problems(), dependencies=[READ])
async def list_assignments(
    on: Services, who: Who, profile: str | None = None, limit: Limit = 50, after: After = None
) -> AssignmentPage:
    """Assignments, oldest first."""
    page = await on.queries.assignments(profile, after, limit)
    seen = [a for a in page.items if await on.access.guard.sees_assignment(who, a)]
    return AssignmentPage(items=[AssignmentView.of(a) for a in seen], next=page.next)


async def _begun(on: Container, number: str) -> AssignmentView:
    return AssignmentView.of(await on.queries.assignment(int(number)))


@router.post(
    "",
    status_code=201,
    responses=problems(*WITH_BODY, 404, 409) | with_headers(201, LOCATION),
    dependencies=[PROFILE, keyed(Begun.ASSIGNMENT, _begun, "/assignments/{id}")],
)
async def assign(
    on: Services, who: Who, body: AssignmentCreate, response: Response
) -> AssignmentView:
    """Assign a profile to a VM, a label selector, a host, or as the default."""
    await on.access.guard.may_assign(who, body.target, body.key)
    try:
        added = await on.assignments.add(body.target, body.key, body.profile, body.intent)
    except TiedAssignments:
        if who.rights.reach.is_everything:
            raise
        raise TiedAssignments(  # whose selector it is, and what it chooses, is not theirs to know
            "a VM could match this selector and another that chooses another profile",
            field="key",
            remedy="give the selector one more label, or ask an administrator",
        ) from None
    response.headers["Location"] = f"{PREFIX}/assignments/{added.id}"
    return AssignmentView.of(added)


@router.get("/{number}", responses=problems(404), dependencies=[READ])
async def get_assignment(number: AssignmentInReach) -> AssignmentView:
    """One assignment."""
    return AssignmentView.of(number)


@router.delete("/{number}", status_code=204, responses=problems(404), dependencies=[PROFILE])
async def unassign(on: Services, number: AssignmentInReach) -> None:
    """Remove an assignment. VMs keep their applied values."""
    await on.assignments.remove(number.id)

"""Applications: records of what was set, and its revert."""

from __future__ import annotations

from uuid import UUID

from vmtune.api.auth.reach import ApplicationInReach
from vmtune.api.auth.security import APPLY, READ, Who
from vmtune.api.http.idempotency import KEYED
from vmtune.api.http.kept_answers import STORED
from vmtune.api.responses import ASKS_A_HOST, KEPT, problems
from vmtune.api.routes.common import After, Limit, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.applications import ApplicationPage, ApplicationView
from vmtune.model.plan.outcome import ApplicationState

router = Router(prefix="/applications", tags=["applications"])


@router.get("", responses=problems() | KEPT, dependencies=[READ, STORED])
async def list_applications(
    on: Services,
    who: Who,
    vm: UUID | None = None,
    host: str | None = None,
    state: ApplicationState | None = None,
    limit: Limit = 50,
    after: After = None,
) -> ApplicationPage:
    """Applications, newest first."""
    page = await on.queries.applications(vm, host, state, after, limit, who.rights.reach)
    return ApplicationPage(
        items=[ApplicationView.of(a, on.tunables) for a in page.items], next=page.next
    )


@router.get("/{application}", responses=problems(404) | KEPT, dependencies=[READ, STORED])
async def get_application(on: Services, application: ApplicationInReach) -> ApplicationView:
    """One application."""
    return ApplicationView.of(application, on.tunables)


@router.post("/{application}/revert", responses=problems(*ASKS_A_HOST), dependencies=[APPLY, KEYED])
async def revert_application(
    on: Services, who: Who, application: ApplicationInReach
) -> ApplicationView:
    """Restore the values from before the application, and verify them by reading back."""
    await on.access.guard.vm(who, application.vm)  # it may be elsewhere by now
    return ApplicationView.of(await on.applications.revert(application.id), on.tunables)

"""Templates that profiles can begin with."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from vmtune.api.auth.security import READ
from vmtune.api.responses import problems
from vmtune.api.routes.common import Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.profiles import ProfileTemplatePage, ProfileTemplateView
from vmtune.model.profile_templates import USUAL_MEMORY_BYTES, profile_templates

router = Router(prefix="/profile-templates", tags=["profiles"])
_MOST_MEMORY_BYTES = 1 << 50


@router.get("", responses=problems(), dependencies=[READ])
async def list_profile_templates(
    on: Services,
    memory_bytes: Annotated[
        int,
        Query(
            ge=1,
            le=_MOST_MEMORY_BYTES,
            description="The guest's memory: some policies wait for so many seconds per GiB.",
        ),
    ] = USUAL_MEMORY_BYTES,
) -> ProfileTemplatePage:
    """Values and steps to begin a profile with: for usual situations, and as other managers of
    VMs migrate. All of them; there is one page."""
    rows = on.tunables
    items = [ProfileTemplateView.of(each, rows) for each in profile_templates(memory_bytes)]
    return ProfileTemplatePage(items=items, next=None)

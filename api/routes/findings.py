"""Host diagnostics."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from vmtune.api.auth.reach import WholeHostInReach
from vmtune.api.auth.security import READ, Who
from vmtune.api.responses import ASKS_A_HOST, problems
from vmtune.api.routes.common import Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.doctor import DiagnosisView
from vmtune.api.schemas.host_check import HostCheckView

router = Router(prefix="/hosts", tags=["hosts"])


@router.get("/{name}/findings", responses=problems(*ASKS_A_HOST), dependencies=[READ])
async def list_findings(on: Services, name: WholeHostInReach) -> DiagnosisView:
    """Host diagnostics: problems of a host, their reasons and remedies."""
    return DiagnosisView.of(await on.doctor.diagnose(name))


@router.get("/{name}/check", responses=problems(*ASKS_A_HOST), dependencies=[READ])
async def check_host(
    on: Services,
    who: Who,
    name: WholeHostInReach,
    to: Annotated[str, Query(description="The host to migrate to; empty for the host alone.")] = "",
) -> HostCheckView:
    """Try what a migration needs of a host, or of two, by a new connection. Changes nothing."""
    if to:
        on.access.guard.whole_host(who, to)
    return HostCheckView.of(await on.host_check.check(name, to))

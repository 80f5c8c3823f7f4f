"""Host diagnostics."""

from __future__ import annotations

from vmtune.api.auth.reach import WholeHostInReach
from vmtune.api.auth.security import READ
from vmtune.api.responses import ASKS_A_HOST, problems
from vmtune.api.routes.common import Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.doctor import DiagnosisView

router = Router(prefix="/hosts", tags=["hosts"])


@router.get("/{name}/findings", responses=problems(*ASKS_A_HOST), dependencies=[READ])
async def list_findings(on: Services, name: WholeHostInReach) -> DiagnosisView:
    """Host diagnostics: problems of a host, their reasons and remedies."""
    return DiagnosisView.of(await on.doctor.diagnose(name))

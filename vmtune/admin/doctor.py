"""Host diagnostics without a service: examines this machine, for the client, which has no
drivers."""

from __future__ import annotations

from typing import Any

from vmtune.api.schemas.doctor import DiagnosisView
from vmtune.hypervisor.linux.doctor_probe import examine
from vmtune.model.doctor.rules import diagnose


def diagnose_here() -> dict[str, Any]:  # any JSON: a DiagnosisView
    """This machine's diagnostics, as the API returns them."""
    seen = examine()
    return DiagnosisView.of(diagnose(seen.hostname, seen)).model_dump(mode="json")

"""The doctor without a service: looks at this machine, for the client, which knows no driver."""

from __future__ import annotations

from typing import Any

from vmtune.api.schemas.doctor import DiagnosisView
from vmtune.hypervisor.linux.doctor_probe import examine
from vmtune.model.doctor.rules import diagnose


def diagnose_here() -> dict[str, Any]:  # any JSON: a DiagnosisView
    """This machine, as the API would tell of it."""
    seen = examine()
    return DiagnosisView.of(diagnose(seen.hostname, seen)).model_dump(mode="json")

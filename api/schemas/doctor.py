"""Host diagnostics: what was found on a host."""

from __future__ import annotations

from pydantic import Field

from vmtune.api.schemas.common import Model
from vmtune.api.schemas.plans import FindingView
from vmtune.model.doctor.rules import Diagnosis


class SkippedCheckView(Model):
    """A check that could not run, and why."""

    what: str
    why: str


class DiagnosisView(Model):
    """Host diagnostics: findings, and checks that could not run."""

    host: str
    healthy: bool = Field(description="There are no findings except infos.")
    findings: list[FindingView] = Field(description="Most severe first; an info needs no action.")
    skipped_checks: list[SkippedCheckView]

    @classmethod
    def of(cls, diagnosis: Diagnosis) -> DiagnosisView:
        return cls.from_record(diagnosis, healthy=not diagnosis.needs_action)

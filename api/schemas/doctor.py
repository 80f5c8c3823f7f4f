"""What the doctor found on a host."""

from __future__ import annotations

from pydantic import Field

from vmtune.api.schemas.common import Model
from vmtune.api.schemas.plans import FindingView
from vmtune.model.doctor.facts import Unseen
from vmtune.model.doctor.rules import Diagnosis


class UnseenView(Model):
    """What could not be looked at, and why."""

    what: str
    why: str

    @classmethod
    def of(cls, unseen: Unseen) -> UnseenView:
        return cls(what=unseen.what, why=unseen.why)


class DiagnosisView(Model):
    """What of a host will hurt, and what could not be seen."""

    host: str
    healthy: bool = Field(description="Nothing was found that asks for something.")
    findings: list[FindingView] = Field(
        description="Those that ask for something first; an info asks for nothing."
    )
    unseen: list[UnseenView]

    @classmethod
    def of(cls, diagnosis: Diagnosis) -> DiagnosisView:
        return cls(
            host=diagnosis.host,
            healthy=not diagnosis.to_mend,
            findings=[FindingView.of(finding) for finding in diagnosis.findings],
            unseen=[UnseenView.of(unseen) for unseen in diagnosis.unseen],
        )

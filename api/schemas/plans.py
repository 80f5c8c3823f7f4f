"""Plans: what would be set where and when, and what stands against it."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field, StrictInt, StrictStr

from vmtune.api.schemas.common import Model, Shown
from vmtune.api.schemas.controlled import StepTexts, StepView, step_texts
from vmtune.api.schemas.vms import ReadingView
from vmtune.domain.facts import Connection
from vmtune.domain.findings import Finding, Severity
from vmtune.domain.plan import Plan, PlanItem, TakesEffect
from vmtune.domain.tunables import Route, Side


class PlanCreate(Model):
    """What to plan. Nothing is changed."""

    profile: StrictStr | None = Field(default=None, description="None for the assigned one.")
    revision: StrictInt | None = Field(default=None, ge=1, description="None for the current one.")
    destination: StrictStr | None = Field(
        default=None, description="The host it is to migrate to; none to plan an application."
    )


class FindingView(Model):
    """One thing the preflight found."""

    code: str
    severity: Severity
    tunable: str | None = Field(
        description="Null where it concerns the VM, a host, or a step of the profile."
    )
    message: str
    remedy: str
    evidence: dict[str, str | int]

    @classmethod
    def of(cls, finding: Finding) -> FindingView:
        return cls(
            code=finding.code,
            severity=finding.severity,
            tunable=finding.tunable or None,
            message=finding.message,
            remedy=finding.remedy,
            evidence=dict(finding.evidence),
        )


class PlanItemView(Model):
    """One tunable of the plan."""

    tunable: str
    wanted: Shown
    current: ReadingView
    route: Route
    side: Side
    takes_effect: TakesEffect
    overwriter: str = Field(description="Who would undo it if it were set another way.")
    differs: bool = Field(description="What is set now is known to be another value.")

    @classmethod
    def of(cls, item: PlanItem) -> PlanItemView:
        return cls(
            tunable=item.tunable,
            wanted=Shown.of(item.tunable, item.wanted),
            current=ReadingView.of(item.tunable, item.current),
            route=item.route,
            side=item.side,
            takes_effect=item.takes_effect,
            overwriter=item.overwriter,
            differs=item.differs,
        )


class PlanView(Model):
    """The plan for one VM."""

    vm: UUID
    vm_name: str
    host: str
    destination: str | None
    connection: Connection
    profile: str | None = Field(description="Null where none was named and none is assigned.")
    revision: int | None
    clean: bool = Field(description="Nothing would change, and nothing stands against it.")
    blockers: list[str] = Field(description="Codes of the findings that stop it.")
    findings: list[FindingView]
    items: list[PlanItemView]
    steps: list[StepView] = Field(description="What is done when the migration does not end.")
    step_texts: StepTexts

    @classmethod
    def of(cls, plan: Plan) -> PlanView:
        return cls(
            vm=plan.vm,
            vm_name=plan.vm_name,
            host=plan.host,
            destination=plan.destination or None,
            connection=plan.connection,
            profile=plan.profile or None,
            revision=plan.revision or None,
            clean=plan.clean,
            blockers=list(dict.fromkeys(finding.code for finding in plan.blockers())),
            findings=[FindingView.of(finding) for finding in plan.findings],
            items=[PlanItemView.of(item) for item in plan.items],
            steps=StepView.all_of(plan.steps),
            step_texts=step_texts(plan.steps),
        )

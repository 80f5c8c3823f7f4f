"""Plans: what would be set where and when, and what stands against it."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field, StrictInt, StrictStr

from vmtune.api.schemas.common import Model, RawValues, Shown, WireValue
from vmtune.api.schemas.controlled import RawSteps, StepTexts, StepView, step_texts
from vmtune.api.schemas.vms import ReadingView
from vmtune.model.findings.table import Finding, Severity
from vmtune.model.host.facts import Connection
from vmtune.model.plan.plan import PlanItem, TakesEffect
from vmtune.model.tunables.tunable import Route, Side
from vmtune.model.tunables.virsh import command, spoken_plan
from vmtune.services.tuning.planning import Planned


class PlanCreate(Model):
    """What to plan. Nothing is changed."""

    profile: StrictStr | None = Field(default=None, description="None for the assigned one.")
    revision: StrictInt | None = Field(default=None, ge=1, description="None for the current one.")
    destination: StrictStr | None = Field(
        default=None, description="The host it is to migrate to; none to plan an application."
    )
    values: RawValues = Field(
        default={}, description="Beside or instead of the profile's, this time; null unsets one."
    )
    steps: RawSteps | None = Field(
        default=None, description="Instead of the profile's, this time; null keeps those."
    )


class UnsaidView(Model):
    """A value that no option of virsh expresses."""

    tunable: str
    wanted: Shown
    reason: str


class VirshOptionView(Model):
    """One option of `virsh migrate`."""

    option: str
    value: str = Field(description="Empty where it takes none.")
    tunable: str
    wanted: WireValue


class VirshView(Model):
    """The same migration by virsh, started by hand. Which options an installed virsh knows,
    `virsh help migrate` tells."""

    command: str = Field(description="The whole command, quoted for a shell.")
    flags: list[str] = Field(description="The profile's part of it, as separate words.")
    options: list[VirshOptionView]
    unsaid: list[UnsaidView] = Field(description="What virsh has no option for.")

    @classmethod
    def of(cls, planned: Planned) -> VirshView | None:
        """Null without a destination, or without libvirt."""
        plan = planned.plan
        if not plan.destination or plan.connection is not Connection.LIBVIRT:
            return None
        said = spoken_plan(plan)
        rows = {item.tunable: item.row for item in plan.items}
        there = planned.peer_uri or "DESTINATION_URI"
        persistent = planned.facts.persistent
        return cls(
            command=command(planned.driver.uri, plan.vm_name, there, said, persistent),
            flags=said.words,
            options=[
                VirshOptionView(
                    option=option.option,
                    value=option.value,
                    tunable=option.tunable,
                    wanted=option.wanted,
                )
                for option in said.options
            ],
            unsaid=[
                UnsaidView(
                    tunable=unsaid.tunable,
                    wanted=Shown.of(unsaid.tunable, unsaid.value, rows),
                    reason=unsaid.reason,
                )
                for unsaid in said.unsaid
            ],
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
        rows = {item.tunable: item.row}
        return cls(
            tunable=item.tunable,
            wanted=Shown.of(item.tunable, item.wanted, rows),
            current=ReadingView.of(item.tunable, item.current, rows),
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
    virsh: VirshView | None = Field(
        description="The equal `virsh migrate`; null without a destination or without libvirt."
    )

    @classmethod
    def of(cls, planned: Planned) -> PlanView:
        plan = planned.plan
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
            virsh=VirshView.of(planned),
        )

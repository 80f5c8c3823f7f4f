"""Plans: what would be set where and when, and the findings."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field, StrictBool, StrictInt, StrictStr

from vmtune.api.schemas.common import (
    Model,
    NumberOrNone,
    RawValues,
    TextOrNone,
    ValueText,
    WireValue,
)
from vmtune.api.schemas.controlled import RawSteps, StepTexts, StepView, step_texts
from vmtune.api.schemas.intents import IntentPlanView, RawIntent
from vmtune.api.schemas.vms import ReadingView
from vmtune.model.findings.table import Severity
from vmtune.model.host.facts import Connection
from vmtune.model.plan.plan import PlanItem, TakesEffect
from vmtune.model.tunables.tunable import Route, Side
from vmtune.model.tunables.virsh import command, plan_to_virsh
from vmtune.services.tuning.planning import Planned


class PlanCreate(Model):
    """The application or migration to plan."""

    profile: StrictStr | None = Field(default=None, description="Null for the assigned profile.")
    revision: StrictInt | None = Field(
        default=None, ge=1, description="Null for the current revision."
    )
    destination: StrictStr | None = Field(
        default=None, description="Destination of a migration; null to plan an application."
    )
    values: RawValues = Field(
        default={}, description="Values that override the profile's; null unsets a tunable."
    )
    steps: RawSteps | None = Field(
        default=None, description="Steps instead of the profile's; null keeps those."
    )
    without_profile: StrictBool = Field(
        default=False,
        description="Plan `values` and `steps` alone, as for a profile that is not stored yet.",
    )
    intent: RawIntent | None = Field(
        default=None,
        description="Plan a migration by intent: it needs a destination, and the VM is measured "
        "for some 20 s unless that was done lately.",
    )


class ValueWithoutOptionView(Model):
    """A value without an option of virsh."""

    tunable: str
    wanted: ValueText
    reason: str


class VirshOptionView(Model):
    """One option of `virsh migrate`."""

    option: str
    value: str = Field(description="Empty for a flag.")
    tunable: str
    wanted: WireValue


class VirshView(Model):
    """The equivalent virsh command. `virsh help migrate` lists the options of an installed
    virsh."""

    command: str = Field(description="The whole command, quoted for a shell.")
    flags: list[str] = Field(description="The profile's part of it, as separate words.")
    options: list[VirshOptionView]
    not_expressed: list[ValueWithoutOptionView] = Field(
        description="Values without an option of virsh."
    )

    @classmethod
    def of(cls, planned: Planned) -> VirshView | None:
        """Null without a destination, or without libvirt."""
        plan = planned.plan
        if not plan.destination or plan.connection is not Connection.LIBVIRT:
            return None
        said = plan_to_virsh(plan)
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
            not_expressed=[
                ValueWithoutOptionView(
                    tunable=each.tunable,
                    wanted=ValueText.of(each.tunable, each.value, rows),
                    reason=each.reason,
                )
                for each in said.not_expressed
            ],
        )


class FindingView(Model):
    """One finding of the preflight."""

    code: str
    severity: Severity
    tunable: TextOrNone = Field(
        description="Null if it concerns the VM, a host, or a step of the profile."
    )
    message: str
    remedy: str
    evidence: dict[str, str | int]
    overridable: bool = Field(description="It is a blocker that an override lifts.")


class PlanItemView(Model):
    """One tunable of the plan."""

    tunable: str
    wanted: ValueText
    current: ReadingView
    route: Route
    side: Side
    takes_effect: TakesEffect
    overwriter: str = Field(description="What overwrites the value if it is set another way.")
    differs: bool = Field(description="The current value is known and differs.")

    @classmethod
    def of(cls, item: PlanItem) -> PlanItemView:
        rows = {item.tunable: item.row}
        return cls.from_record(
            item,
            wanted=ValueText.of(item.tunable, item.wanted, rows),
            current=ReadingView.of(item.tunable, item.current, rows),
        )


class PlannedDiskView(Model):
    """A local disk that is copied along."""

    target: str = Field(description="Its name in the configuration, such as `vda`.")
    path: str = Field(description="Path of its file or device, the same on both hosts.")
    format: str = Field(description="`raw`, `qcow2` or another; empty where nothing says it.")
    capacity_bytes: int | None = Field(description="What the guest sees; null where not known.")
    allocated_bytes: int | None = Field(description="What it takes on its host.")


class PlanView(Model):
    """The plan for one VM."""

    vm: UUID
    vm_name: str
    host: str
    destination: TextOrNone
    connection: Connection
    profile: TextOrNone = Field(description="Null if none was given and none is assigned.")
    revision: NumberOrNone
    clean: bool = Field(description="Nothing would change, and there are no blockers.")
    blockers: list[str] = Field(description="Codes of the blockers.")
    findings: list[FindingView]
    items: list[PlanItemView]
    steps: list[StepView] = Field(description="Convergence steps.")
    step_texts: StepTexts
    disks: list[PlannedDiskView] = Field(description="The local disks that are copied along.")
    virsh: VirshView | None = Field(
        description="The equivalent `virsh migrate`; null without a destination or without libvirt."
    )
    intent: IntentPlanView | None = Field(
        description="The choices for the intent that was given; null without one."
    )

    @classmethod
    def of(cls, planned: Planned, intent: IntentPlanView | None = None) -> PlanView:
        plan = planned.plan
        return cls.from_record(
            plan,
            blockers=list(dict.fromkeys(finding.code for finding in plan.blockers())),
            items=[PlanItemView.of(item) for item in plan.items],
            steps=StepView.all_of(plan.steps),
            step_texts=step_texts(plan.steps),
            disks=[PlannedDiskView.from_record(disk) for disk in plan.disks],
            virsh=VirshView.of(planned),
            intent=intent,
        )

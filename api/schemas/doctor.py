"""Host diagnostics: what was found on a host."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from vmtune.api.schemas.common import Model
from vmtune.api.schemas.plans import FindingView
from vmtune.model.doctor.kernel import FIXED_BY
from vmtune.model.doctor.rules import Diagnosis
from vmtune.model.host.srcu_cost import PUBLISHED_US, SrcuCost, default_parameters


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


class UpdateTimesView(Model):
    """How long updates of one kind took."""

    count: int
    median_us: float
    p90_us: float
    p99_us: float
    most_us: float
    mean_us: float


class SrcuCostView(Model):
    """What updates of a VM's memory map cost on this machine, beside the published figures."""

    vcpus: int
    add: UpdateTimesView
    delete: UpdateTimesView
    idle_add: UpdateTimesView = Field(description="Before any vCPU ran.")
    idle_delete: UpdateTimesView
    grace_period_us: float
    usual_boot_s: float = Field(description="9,000 grace periods at the median.")
    mean_boot_s: float = Field(description="At the mean: with what other work on the host adds.")
    published_grace_period_us: dict[str, int]
    parameters: dict[str, str] = Field(description="Of the module srcutree.")
    config_hz: int | None
    default_parameters: dict[str, int] | None

    @classmethod
    def of(cls, cost: SrcuCost, parameters: Mapping[str, str], hz: int | None) -> SrcuCostView:
        return cls.from_record(
            cost,
            published_grace_period_us=PUBLISHED_US,
            parameters={name: parameters[name] for name in sorted(FIXED_BY & parameters.keys())},
            config_hz=hz,
            default_parameters=None if hz is None else default_parameters(hz),
        )

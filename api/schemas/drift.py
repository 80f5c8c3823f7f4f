"""Scans for drift: what the last one of each host found, and the VMs that drift."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field, StrictStr

from vmtune.api.schemas.common import Model, Page, ProblemItem, problems_of
from vmtune.api.schemas.vms import TuningView
from vmtune.model.plan.drift import Drift, DriftScan


class DriftScanCreate(Model):
    """The hosts to scan now."""

    host: StrictStr | None = Field(
        default=None, description="Null for all hosts that the caller may see."
    )


class DriftScanAsked(Model):
    """The hosts that are scanned now, each by the service that manages it."""

    hosts: list[str] = Field(description="The scans have ended when none is `pending`.")


class ScanResultView(Model):
    """Result of a scan of a host."""

    checked: int = Field(description="Running VMs that were compared to their profile.")
    drifted: int = Field(description="VMs that drift.")
    without_profile: int = Field(
        description="Running VMs without an application or assignment: skipped."
    )
    skipped: int = Field(description="Running VMs with an active operation or migration: skipped.")
    failed: int = Field(description="Running VMs that did not answer: their state is unchanged.")
    took_ms: int


class DriftScanView(Model):
    """The last scan of a host."""

    host: str
    pending: bool = Field(description="A requested scan has not ended yet.")
    ended_at: datetime | None = Field(description="Null before the first scan.")
    service: str = Field(description="The service that scanned; empty for a single service.")
    result: ScanResultView | None = Field(description="Null before the first scan.")
    problems: list[ProblemItem] = Field(
        description="Why the host or some of its VMs did not answer; the first few."
    )

    @classmethod
    def of(cls, scan: DriftScan) -> DriftScanView:
        return cls.from_record(
            scan,
            problems=problems_of(scan.result.problems if scan.result else ()),
        )


class DriftScanPage(Page[DriftScanView]):
    """The last scan of each host, sorted by name."""


class DriftView(Model):
    """A VM that drifts, as of the last check."""

    vm: UUID
    name: str
    host: str
    tuning: TuningView

    @classmethod
    def of(cls, drift: Drift) -> DriftView:
        return cls(
            vm=drift.vm.uuid,
            name=drift.vm.name,
            host=drift.vm.host,
            tuning=TuningView.from_record(drift.tuning),
        )


class DriftPage(Page[DriftView]):
    """The VMs that drift, sorted by name."""

"""Scans for drift: what the last one of each host found, and the VMs that drift."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field, StrictStr

from vmtune.api.schemas.common import Model, Page, ProblemItem, problems_of
from vmtune.api.schemas.vms import TuningView
from vmtune.model.plan.drift import Drift, DriftScan, Found


class DriftScanCreate(Model):
    """Which hosts to look at now."""

    host: StrictStr | None = Field(default=None, description="Null for all within reach.")


class DriftScanAsked(Model):
    """The hosts that are looked at now, each by the service that drives it."""

    hosts: list[str] = Field(description="Done once none of their scans is `pending`.")


class FoundView(Model):
    """What a scan of a host found."""

    looked_at: int = Field(description="Running VMs that were held against what is wanted.")
    drifted: int = Field(description="Those of them that run otherwise than what was applied.")
    nothing_wanted: int = Field(description="Running VMs of which nothing is wanted: not asked.")
    left_out: int = Field(description="Running VMs that something was being done to, or moved.")
    failed: int = Field(description="Running VMs that could not be asked: they stand as before.")
    took_ms: int

    @classmethod
    def of(cls, found: Found) -> FoundView:
        return cls(
            looked_at=found.looked_at,
            drifted=found.drifted,
            nothing_wanted=found.nothing_wanted,
            left_out=found.left_out,
            failed=found.failed,
            took_ms=found.took_ms,
        )


class DriftScanView(Model):
    """The last look at all VMs of a host."""

    host: str
    pending: bool = Field(description="One was asked for that has not ended.")
    ended_at: datetime | None = Field(description="Null where none was made yet.")
    service: str = Field(description="Which made it; empty where one service drives every host.")
    found: FoundView | None = Field(description="Null where none was made yet.")
    problems: list[ProblemItem] = Field(
        description="Why the host, or some of its VMs, could not be asked; the first few."
    )

    @classmethod
    def of(cls, scan: DriftScan) -> DriftScanView:
        return cls(
            host=scan.host,
            pending=scan.pending,
            ended_at=scan.ended_at,
            service=scan.service,
            found=FoundView.of(scan.found) if scan.found else None,
            problems=problems_of(scan.found.problems if scan.found else ()),
        )


class DriftScanPage(Page[DriftScanView]):
    """The last scan of each host, in the order of their names."""


class DriftView(Model):
    """A VM that runs otherwise than what was applied to it, as it was last seen."""

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
            tuning=TuningView.of(drift.tuning),
        )


class DriftPage(Page[DriftView]):
    """The VMs that drift, in the order of their names."""

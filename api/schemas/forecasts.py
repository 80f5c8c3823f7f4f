"""Forecasts of migrations."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field, StrictBool, StrictInt, StrictStr

from vmtune.api.schemas.common import (
    Model,
    NumberOrNone,
    ProblemItem,
    RawValues,
    TextOrNone,
    problems_of,
)
from vmtune.forecast.disk_copy import CopyProspect
from vmtune.forecast.needs import Needs
from vmtune.forecast.path import Throughput
from vmtune.forecast.probe import DirtyProbe
from vmtune.forecast.prospect import Prospect
from vmtune.forecast.ranges import Range
from vmtune.services.forecasts.forecasts import Candidate, Forecast


class MigrationForecastCreate(Model):
    """The migration to forecast."""

    destination: StrictStr = Field(description="Name of the destination host.")
    profiles: list[StrictStr] = Field(
        default=[], max_length=10, description="Profiles to compare; empty for the assigned one."
    )
    values: RawValues = Field(
        default={}, description="Values that override each profile's; null unsets a tunable."
    )
    throughput_bytes_per_s: StrictInt | None = Field(
        default=None,
        ge=1 << 10,
        le=1 << 40,
        description="What the path carries, instead of what recorded migrations say.",
    )
    fresh: StrictBool = Field(
        default=False, description="Measure the VM anew even if it was measured lately."
    )


class RangeView(Model):
    """A likely value, and the bounds between which 90 % are meant to be."""

    low: float
    likely: float
    high: float

    @classmethod
    def of(cls, found: Range | None) -> RangeView | None:
        """To four figures."""
        if found is None:
            return None
        low, likely, high = (_figures(value) for value in (found.low, found.likely, found.high))
        return cls(low=low, likely=likely, high=high)


class ForecastNeedsView(Model):
    """What would let the migration end: each by itself would."""

    downtime_limit_ms: int | None
    throughput_bytes_per_s: int | None
    throttle_percent: int | None

    @classmethod
    def of(cls, needs: Needs | None) -> ForecastNeedsView | None:
        """Rounded up."""
        if needs is None:
            return None
        return cls(
            downtime_limit_ms=_up(needs.downtime_limit_ms),
            throughput_bytes_per_s=_up(needs.throughput_bytes_per_s),
            throttle_percent=_up(needs.throttle_percent),
        )


class ProspectView(Model):
    """What is to be expected."""

    ends: bool | None = Field(
        description="Whether it ends by itself; null where that depends on what is not known."
    )
    total_ms: RangeView | None = Field(description="Null where it is not likely to end.")
    silence_ms: RangeView | None = Field(description="How long the guest stands still.")
    sent_bytes: RangeView | None
    passes: RangeView | None
    throttle_percent: RangeView | None = Field(
        description="The most of the guest's CPU time that auto-converge withholds."
    )
    needs: ForecastNeedsView | None = Field(description="Null where it is likely to end.")

    @classmethod
    def of(cls, found: Prospect | None) -> ProspectView | None:
        """Null without one."""
        if found is None:
            return None
        return cls(
            ends=found.ends,
            total_ms=RangeView.of(found.total_ms),
            silence_ms=RangeView.of(found.silence_ms),
            sent_bytes=RangeView.of(found.sent_bytes),
            passes=RangeView.of(found.passes),
            throttle_percent=RangeView.of(found.throttle_percent),
            needs=ForecastNeedsView.of(found.needs),
        )


class ExpectedThroughputView(Model):
    """What the path is expected to carry."""

    bytes_per_s: RangeView
    switchover_bytes_per_s: RangeView = Field(
        description="While the guest stands still, when QEMU lifts its bandwidth limit."
    )
    records: int = Field(description="How many recorded migrations say so.")

    @classmethod
    def of(cls, found: Throughput | None) -> ExpectedThroughputView | None:
        """Null where it is not known."""
        if found is None:
            return None
        held, lifted = RangeView.of(found.bytes_per_s), RangeView.of(found.switchover_bytes_per_s)
        assert held is not None and lifted is not None
        return cls(bytes_per_s=held, switchover_bytes_per_s=lifted, records=found.records)


class CopyProspectView(Model):
    """What is to be expected of the copy of local disks, before the memory."""

    bytes: RangeView
    ms: RangeView | None = Field(description="Null where the throughput is not known.")
    bytes_per_s: RangeView | None = Field(description="Of all disks together.")
    records: int = Field(description="How many recorded copies between these hosts say so.")

    @classmethod
    def of(cls, found: CopyProspect | None) -> CopyProspectView | None:
        """Null where no disk is copied."""
        if found is None:
            return None
        amount = RangeView.of(found.bytes)
        assert amount is not None
        pace = RangeView.of(found.bytes_per_s)
        return cls(bytes=amount, ms=RangeView.of(found.ms), bytes_per_s=pace, records=found.records)


class CandidateView(Model):
    """One profile."""

    profile: TextOrNone
    revision: NumberOrNone
    blockers: list[str] = Field(description="Codes of what stands against the migration.")
    throughput: ExpectedThroughputView | None = Field(description="Null where it is not known.")
    prospect: ProspectView | None = Field(description="Null where the throughput is not known.")
    notes: list[ProblemItem] = Field(description="What the forecast does not know or leaves out.")
    copy_of_disks: CopyProspectView | None = Field(
        description="Of the local disks that are copied before the memory, which the prospect "
        "includes; null where none is."
    )
    corrected_by: dict[str, int] = Field(
        description="Of each figure (`total_time`, `silence`, `bytes`) that is corrected by the "
        "service's own records, how many these are. The others are as computed, with fixed bounds."
    )

    @classmethod
    def of(cls, found: Candidate) -> CandidateView:
        return cls(
            profile=found.profile,
            revision=found.revision,
            blockers=list(found.blockers),
            throughput=ExpectedThroughputView.of(found.throughput),
            prospect=ProspectView.of(found.prospect),
            notes=problems_of(found.notes),
            copy_of_disks=CopyProspectView.of(found.copy),
            corrected_by={figure.value: n for figure, n in found.corrected_by.items()},
        )


class DirtiedView(Model):
    """What the guest had changed some time after a moment."""

    after_ms: float
    dirty_bytes: float


class PageContentsView(Model):
    """What sampled pages of the guest hold."""

    pages: int = Field(description="How many were looked at.")
    zero_share: float = Field(description="Of them, how many hold nothing but zeros, 0 to 1.")
    packed_share: float = Field(
        description="Bytes for a byte of the others once they are compressed (zlib, level 1)."
    )


class ProbeView(Model):
    """What was measured of the VM."""

    measured_at: datetime
    age_s: float
    took_ms: float
    memory_bytes: int
    used_bytes: int | None = Field(
        description="What of QEMU's process is in memory; null where that cannot be seen."
    )
    held_bytes: int | None = Field(
        description="Of the guest's memory, what holds anything but zeros; null where that cannot "
        "be read."
    )
    contents: PageContentsView | None = Field(
        description="What the guest's pages hold; null where they cannot be read: on another host, "
        "without root, or where the setting sample_guest_pages is off."
    )
    changed: PageContentsView | None = Field(
        description="What those hold that the guest changed while it was measured; null likewise, "
        "and where it changed none."
    )
    dirtied: list[DirtiedView] = Field(description="In the order of the time.")

    @classmethod
    def of(cls, probe: DirtyProbe, now: datetime) -> ProbeView:
        return cls.from_record(
            probe,
            contents=probe.contents and PageContentsView.from_record(probe.contents),
            changed=probe.changed and PageContentsView.from_record(probe.changed),
            age_s=round((now - probe.measured_at).total_seconds(), 1),
            dirtied=[
                DirtiedView(after_ms=round(point.after_ms), dirty_bytes=round(point.dirty_bytes))
                for point in sorted(probe.points, key=lambda point: point.after_ms)
            ],
        )


class MigrationForecastView(Model):
    """The forecast of one VM's migration to one host."""

    vm: UUID
    vm_name: str
    source: str
    destination: str
    probe: ProbeView
    candidates: list[CandidateView]

    @classmethod
    def of(cls, found: Forecast, now: datetime) -> MigrationForecastView:
        return cls.from_record(
            found,
            probe=ProbeView.of(found.probe, now),
            candidates=[CandidateView.of(each) for each in found.candidates],
        )


def _figures(value: float) -> float:
    return float(f"{value:.4g}")


def _up(value: float | None) -> int | None:
    return None if value is None else int(value) + 1

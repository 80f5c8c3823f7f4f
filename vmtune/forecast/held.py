"""Forecasts that are kept with their migration, and compared with what happened.

Of a migration there are up to two: one made before it, where the guest was measured, and one made
while it ran, as soon as it could be told whether it ends. What happened is told only of migrations
that nobody helped: a forecast says what comes by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from vmtune.forecast.ranges import Range
from vmtune.model.migration.controller_record import StepEffect
from vmtune.model.migration.forecast_basis import Basis, Figure
from vmtune.model.migration.record import Migration, MigrationState, QemuStatus, Sample

MODEL = 7
"""The version of what computes forecasts: to be raised with each change of the figures."""
_ENDLESS_PASSES = 4
"""A migration that was not to end, and had not after so many passes when it was given up, did not
end."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was forecast, each with the bounds between which 90 % are meant to be.

    :param ends: whether it ends by itself; None for "may not".
    :param total_ms: until the guest runs on the destination; None where it is not likely to end,
        like the others, or is not told.
    :param sent_bytes: on the wire, of disks too.
    """

    ends: bool | None
    total_ms: Range | None = None
    silence_ms: Range | None = None
    sent_bytes: Range | None = None

    def of(self, figure: Figure) -> Range | None:
        """One of them."""
        return (self.total_ms, self.silence_ms, self.sent_bytes)[list(Figure).index(figure)]


@dataclass(frozen=True, slots=True)
class Happened:
    """What came of it.

    :param ended: whether it ended by itself; None where that cannot be said, since it was given up
        or helped before. The figures are those of one that did.
    :param others_total_ms: what users have without forecasts: when QEMU first said a throughput,
        the time until then and what remained, divided by it.
    :param others_silence_ms: the last ``expected-downtime`` of QEMU.
    """

    ended: bool | None
    total_ms: float | None = None
    silence_ms: float | None = None
    sent_bytes: float | None = None
    others_total_ms: float | None = None
    others_silence_ms: float | None = None

    def of(self, figure: Figure) -> float | None:
        """One of them."""
        return (self.total_ms, self.silence_ms, self.sent_bytes)[list(Figure).index(figure)]

    def others(self, figure: Figure) -> float | None:
        """What users have instead; None where they have nothing."""
        return (self.others_total_ms, self.others_silence_ms, None)[list(Figure).index(figure)]


@dataclass(frozen=True, slots=True)
class KeptForecast:
    """A forecast as it is stored with its migration.

    :param model: :data:`MODEL` when it was made.
    :param inputs: what it was made from, as JSON, with ages.
    :param held_at: when the migration had ended; None before.
    """

    basis: Basis
    made_at: datetime
    figures: Figures
    inputs: Mapping[str, Any] = field(default_factory=dict)  # any: JSON
    model: int = MODEL
    happened: Happened | None = None
    held_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class HeldForecast:
    """A forecast whose migration has ended, and where that was.

    :param profile: empty for none; *destination* empty where it is not known.
    """

    migration: UUID
    source: str
    destination: str
    profile: str
    basis: Basis
    figures: Figures
    happened: Happened
    held_at: datetime


def hold(record: Migration, figures: Figures, samples: Sequence[Sample]) -> Happened:
    """What came of *figures*, by the ended *record* and its samples."""
    ended = _ended_by_itself(record, figures, samples)
    totals = record.totals
    if not ended or totals is None:
        return Happened(ended)
    copied_ms = max((disk.ready_ms or 0 for disk in record.disks), default=0)
    copied = sum(disk.copied_bytes for disk in record.disks)
    return Happened(
        ended,
        float(totals.total_time_ms + copied_ms),
        float(totals.downtime_ms),
        float(totals.transferred_bytes + copied),
        None if record.disks else by_throughput_ms(samples),
        last_expected_ms(samples),
    )


def by_throughput_ms(samples: Sequence[Sample]) -> float | None:
    """The total time by the first throughput that QEMU said, and what remained then."""
    for one in samples:
        pace = one.throughput_bytes_per_s
        if one.status is QemuStatus.ACTIVE and pace > 0:
            return one.at_ms + one.remaining_bytes / pace * 1000
    return None


def last_expected_ms(samples: Sequence[Sample]) -> float | None:
    """QEMU's last ``expected-downtime`` while the guest ran on the source."""
    said = [s.expected_downtime_ms for s in samples if s.status is QemuStatus.ACTIVE]
    return float(said[-1]) if said and said[-1] is not None else None


def _ended_by_itself(record: Migration, figures: Figures, samples: Sequence[Sample]) -> bool | None:
    """Whether it did; one that was helped or given up did not end if its forecast was wrong, or
    said so, by then."""
    helped = [
        step.at_ms
        for step in record.step_records
        if step.effect not in (StepEffect.REFUSED, StepEffect.PENDING)
    ]
    switched = [one.at_ms for one in samples if one.status.in_postcopy]
    if record.state is MigrationState.COMPLETED and not helped and not switched:
        return None if record.postcopy is not None else True
    if record.state not in (MigrationState.COMPLETED, MigrationState.CANCELLED):
        return None
    until_ms = min([*helped, *switched, *(one.at_ms for one in samples[-1:])], default=0)
    if figures.total_ms is not None:
        return False if until_ms > figures.total_ms.high else None
    passes = max((one.iteration for one in samples if one.at_ms <= until_ms), default=0)
    return False if passes >= _ENDLESS_PASSES else None

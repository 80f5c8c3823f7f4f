"""Forecasts, compared with what happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from vmtune.api.schemas.common import Model, ProblemItem, TextOrNone, problems_of
from vmtune.api.schemas.forecasts import RangeView
from vmtune.errors import Problem
from vmtune.forecast.checked import Accuracy, Checked, check, check_by, path_of, week_of
from vmtune.forecast.held import Happened, HeldForecast, KeptForecast
from vmtune.model.migration.forecast_basis import Basis, Figure
from vmtune.services.forecasts.kept import CORRECTED_BY


class HappenedView(Model):
    """What came of a forecast."""

    ended: bool | None = Field(
        description="Whether the migration ended by itself; null where that cannot be said, since "
        "it was helped or given up before. Only one that did has figures."
    )
    total_ms: float | None
    silence_ms: float | None
    sent_bytes: float | None
    others_total_ms: float | None = Field(
        description="What users have without a forecast: what remained, divided by the throughput, "
        "as soon as QEMU said one."
    )
    others_silence_ms: float | None = Field(description="QEMU's last `expected-downtime`.")

    @classmethod
    def of(cls, found: Happened | None) -> HappenedView | None:
        return None if found is None else cls.from_record(found)


class KeptForecastView(Model):
    """A forecast that is kept with a migration."""

    basis: Basis = Field(
        description="Made before the migration by a measurement of the guest, or while it ran."
    )
    made_at: datetime
    model: int = Field(description="The version of what computed it.")
    ends: bool | None = Field(description="Null for: it may not.")
    total_ms: RangeView | None
    silence_ms: RangeView | None
    sent_bytes: RangeView | None
    inputs: dict[str, Any] = Field(description="What it was made from, with ages.")
    corrected_by: dict[str, int] = Field(
        description="Of each figure (`total_time`, `silence`, `bytes`) that was corrected by the "
        "service's own records, how many these were."
    )
    happened: HappenedView | None = Field(description="Null until the migration has ended.")

    @classmethod
    def of(cls, kept: KeptForecast) -> KeptForecastView:
        figures = kept.figures
        return cls.from_record(
            kept,
            ends=figures.ends,
            total_ms=RangeView.of(figures.total_ms),
            silence_ms=RangeView.of(figures.silence_ms),
            sent_bytes=RangeView.of(figures.sent_bytes),
            inputs=dict(kept.inputs),
            corrected_by=kept.inputs.get(CORRECTED_BY, {}),
            happened=HappenedView.of(kept.happened),
        )


class KeptForecasts(Model):
    """A migration's forecasts, in the order in which they were made."""

    items: list[KeptForecastView]
    none_before: ProblemItem | None = Field(
        description="Why none was made before the migration; null where one was."
    )

    @classmethod
    def of(cls, kept: Sequence[KeptForecast], left_out: Problem) -> KeptForecasts:
        """*left_out* says why, where none was made before."""
        before = any(each.basis is Basis.BEFORE for each in kept)
        return cls(
            items=[KeptForecastView.of(each) for each in kept],
            none_before=None if before else problems_of([left_out])[0],
        )


class AccuracyView(Model):
    """How good the forecasts of one figure were; errors are shares of what happened."""

    count: int
    median_error: float
    p90_error: float = Field(description="90 % of the errors are at most this.")
    median_off: float = Field(description="In the figure's unit: milliseconds or bytes.")
    p90_off: float
    within: float = Field(description="The share within the bounds; 0.9 is meant.")
    others_count: int = Field(description="How many have what users have without a forecast.")
    others_median_error: float | None
    others_p90_error: float | None

    @classmethod
    def of(cls, found: Accuracy | None) -> AccuracyView | None:
        return None if found is None else cls.from_record(found)


class ForecastCheckRow(Model):
    """Some forecasts together."""

    key: TextOrNone = Field(
        description="Which they are: the profile, the two hosts, or the week's Monday; null for all"
        ", and for migrations without a profile."
    )
    forecasts: int
    ends_known: int = Field(
        description="Of how many it can be said whether their migration ended by itself."
    )
    ends_right: float | None = Field(
        description="The share of these that said so, of those that said yes or no."
    )
    may_not: int = Field(description="Of these, how many said that it may not.")
    total_time: AccuracyView | None
    silence: AccuracyView | None
    bytes: AccuracyView | None

    @classmethod
    def of(cls, key: str, found: Checked) -> ForecastCheckRow:
        return cls(
            key=key,
            forecasts=found.forecasts,
            ends_known=found.ends_known,
            ends_right=found.ends_right,
            may_not=found.may_not,
            **{each.value: AccuracyView.of(found.figures.get(each)) for each in Figure},
        )


class BasisCheck(Model):
    """The forecasts of one basis."""

    basis: Basis
    overall: ForecastCheckRow
    by_profile: list[ForecastCheckRow]
    by_path: list[ForecastCheckRow]
    by_week: list[ForecastCheckRow]

    @classmethod
    def of(cls, basis: Basis, held: Sequence[HeldForecast]) -> BasisCheck:
        def rows(key: Callable[[HeldForecast], str]) -> list[ForecastCheckRow]:
            return [ForecastCheckRow.of(name, found) for name, found in check_by(held, key)]

        return cls(
            basis=basis,
            overall=ForecastCheckRow.of("", check(held)),
            by_profile=rows(lambda each: each.profile),
            by_path=rows(path_of),
            by_week=rows(week_of),
        )


class ForecastCheck(Model):
    """Forecasts of migrations that have ended, compared with what happened."""

    truncated: bool = Field(description="There are more: only the latest were looked at.")
    items: list[BasisCheck] = Field(description="One for each basis of which there are forecasts.")

    @classmethod
    def of(cls, held: Sequence[HeldForecast], most: int) -> ForecastCheck:
        """Of the latest *most*."""
        shown = held[:most]
        by_basis = ((basis, [h for h in shown if h.basis is basis]) for basis in Basis)
        items = [BasisCheck.of(basis, found) for basis, found in by_basis if found]
        return cls(truncated=len(held) > most, items=items)

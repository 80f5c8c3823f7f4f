"""Campaigns: requests, forecasts, progress."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from vmtune.api.schemas.common import Model, Page
from vmtune.bench.model.campaign import file as campaign_file
from vmtune.bench.model.campaign.campaign import Campaign
from vmtune.bench.model.campaign.record import CampaignState, Forecast
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.services.campaigns.campaigns import CampaignStatus, PlannedStatus

Json = dict[str, Any]  # any JSON


class ForecastView(Model):
    """Detectable difference and duration of a campaign."""

    runs: int = Field(description="Including the warm-up.")
    detectable_percent: float | None = Field(
        description="The difference of B to A that is detected with 80 % power. Null "
        "if there are too few blocks for a verdict."
    )
    noise_percent: float = Field(description="Spread of the runs of one arm.")
    noise_reason: str
    duration_s: float
    duration_reason: str

    @classmethod
    def of(cls, forecast: Forecast) -> ForecastView:
        found = forecast.detectable
        return cls.from_record(
            forecast,
            detectable_percent=None if found is None else round((found - 1) * 100, 1),
            noise_percent=round(forecast.noise * 100, 1),
            duration_s=round(forecast.duration_s),
        )


class CampaignForecast(Model):
    """The campaign with defaults filled in, and its forecast."""

    campaign: Json
    forecast: ForecastView

    @classmethod
    def of_parts(cls, campaign: Campaign, forecast: Forecast) -> CampaignForecast:
        return cls(campaign=campaign_file.to_json(campaign), forecast=ForecastView.of(forecast))


class CampaignView(Model):
    """A campaign and its progress."""

    id: UUID
    name: str
    kind: ScenarioKind
    title: str
    state: CampaignState
    ended: bool
    reason: str = Field(description="Why it is paused or failed; empty if a user paused it.")
    host: str
    arms: list[str]
    cells: list[str]
    blocks: int
    seed: int
    primary_metric: str
    margin_percent: float
    total: int = Field(description="Number of runs, including the warm-up.")
    done: int = Field(description="Number of runs with a result.")
    runs: dict[RunState, int] = Field(
        description="Number of runs in each state; interrupted runs are repeated."
    )
    remaining_s: float | None = Field(description="Estimated remaining time; null after its end.")
    forecast: ForecastView
    created_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, status: CampaignStatus) -> CampaignView:
        return cls(**_fields(status))


def _fields(status: CampaignStatus) -> dict[str, Any]:  # any: CampaignView's
    record = status.record
    campaign = record.campaign
    return {
        "id": record.id,
        "name": campaign.name,
        "kind": campaign.kind,
        "title": campaign.title,
        "state": record.state,
        "ended": record.state.ended,
        "reason": record.reason,
        "host": record.host,
        "arms": [arm.name for arm in campaign.arms],
        "cells": [cell.name for cell in campaign.cells],
        "blocks": campaign.blocks,
        "seed": campaign.seed,
        "primary_metric": campaign.primary_metric,
        "margin_percent": campaign.margin_percent,
        "total": campaign.run_count,
        "done": status.done,
        "runs": dict(status.states),
        "remaining_s": None if status.remaining_s is None else round(status.remaining_s),
        "forecast": ForecastView.of(record.forecast),
        "created_at": record.created_at,
        "ended_at": record.ended_at,
    }


class CampaignDetail(CampaignView):
    """A campaign with its full definition."""

    campaign: Json = Field(description="The definition, with defaults filled in.")

    @classmethod
    def of_status(cls, status: CampaignStatus) -> CampaignDetail:
        return cls(**_fields(status), campaign=campaign_file.to_json(status.record.campaign))


class CampaignPage(Page[CampaignView]):
    """Campaigns, newest first."""


class PlannedRunView(Model):
    """One planned run of a campaign and its outcome."""

    number: int = Field(description="Position in the campaign, from 1.")
    block: int = Field(description="From 1; 0 is the warm-up, which is not counted.")
    position: int = Field(description="Position in the block, from 1.")
    cell: str
    scenario: str
    arm: str
    state: RunState | None = Field(description="Null until it starts.")
    run: UUID | None = Field(description="The counted attempt, or else the last one.")
    attempts: int = Field(description="Above 1 if it was interrupted and repeated.")

    @classmethod
    def of(cls, status: PlannedStatus) -> PlannedRunView:
        planned, run = status.planned, status.run
        return cls.from_record(
            planned,
            cell=planned.cell.name,
            scenario=status.scenario,
            arm=planned.arm.name,
            state=run.state if run else None,
            run=run.id if run else None,
            attempts=status.attempts,
        )


class PlannedRunPage(Page[PlannedRunView]):
    """A campaign's runs in order of execution."""

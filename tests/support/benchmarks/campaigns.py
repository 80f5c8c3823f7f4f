"""Campaigns for tests."""

from __future__ import annotations

from typing import Any

from tests.support.benchmarks.bench_runs import small
from vmtune.bench.model.campaign.campaign import Campaign
from vmtune.bench.model.campaign.file import from_json
from vmtune.bench.model.campaign.record import Forecast

FORECAST = Forecast(5, None, 0.1, "assumed", 60.0, "assumed")


def campaign_json(**changes: Any) -> dict[str, Any]:  # any JSON
    """A campaign of two arms and two blocks, as JSON."""
    return {
        "name": "mine",
        "scenario": small(warmup_s=0, cooldown_s=0),
        "blocks": 2,
        "seed": 7,
        "kvm": False,
        "arms": [{"name": "stock"}, {"name": "tuned", "values": {"multifd": True}}],
        **changes,
    }


def a_campaign(**changes: Any) -> Campaign:  # any JSON
    """The same, read."""
    return from_json(campaign_json(**changes), {})

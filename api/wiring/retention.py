"""Builds the service's periodic tasks: drift scans and retention."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from vmtune.config.settings import Settings
from vmtune.model.retention import RetentionSettings
from vmtune.services.events import EventBus
from vmtune.services.hosts.hosts import HostService
from vmtune.services.tuning.drift import DriftService
from vmtune.services.tuning.planning import PlanService
from vmtune.storage import Store


def retention_of(settings: Settings) -> RetentionSettings:
    """The retention times of the settings."""
    return RetentionSettings(
        settings.samples_whole_days,
        settings.samples_thinned_s,
        settings.samples_days,
        settings.audit_days,
        settings.gone_vms_days,
        settings.idempotency_days,
        settings.webhook_days,
        settings.forecast_days,
    )


@asynccontextmanager
async def scanning(
    settings: Settings, store: Store, bus: EventBus, hosts: HostService, plans: PlanService
) -> AsyncIterator[DriftService]:
    """Scans the hosts for drift within the block."""
    interval_s, shared = settings.drift_scan_interval_s, settings.shared
    drift = DriftService(store, bus, hosts, plans, interval_s, shared=shared)
    await drift.start()
    try:
        yield drift
    finally:
        await drift.close()

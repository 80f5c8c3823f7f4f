"""What ``/metrics`` shows: what this service has counted, and what the database has of all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from vmtune.errors import VmtuneError
from vmtune.model.service_metrics import EXPORTED
from vmtune.services.metrics import telemetry
from vmtune.storage import Store
from vmtune.storage.repositories.counts import Tally

log = structlog.get_logger(__name__)

_S = TypeVar("_S", bound=StrEnum)
_Samples = Mapping[str, Mapping[str, float]]
"""By metric and by the value of its one label, if it has one."""


class Exposition:
    """Answers a scrape. Contacts no host: a scrape costs a few counts in the database.
    :param service: this service's name; empty where one manages every host.
    """

    def __init__(self, store: Store, version: str, schema: str, service: str) -> None:
        self._store = store
        self._service = service
        telemetry.note_build(version, schema, service)

    async def scrape(self, accept: str) -> tuple[bytes, str]:
        """The metrics, and their media type: as text, or as OpenMetrics if *accept*, the request's
        header, requests that.

        Where the database cannot be read, what is read from it is missing, and
        ``vmtune_database_up`` is 0.
        """
        encode, media_type = choose_encoder(accept)
        samples: _Samples = {}
        try:
            tally = await asyncio.to_thread(self._store.tallies.now)
        except VmtuneError as error:
            log.warning("metrics without the database's", reason=error.message)
            telemetry.note_database(False)
        else:
            telemetry.note_database(True, self._owned(tally))
            samples = _samples(tally)
        return encode(_Combined(samples)), media_type

    def _owned(self, tally: Tally) -> int:
        """How many hosts this service looks after."""
        return tally.hosts.get(self._service, 0) if self._service else sum(tally.hosts.values())


class _Combined(Collector):
    """The process's own counters, then those from the database."""

    def __init__(self, samples: _Samples) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Metric]:
        yield from telemetry.REGISTRY.collect()
        for name, by_label in self._samples.items():
            row = EXPORTED[name]
            family = GaugeMetricFamily(name, row.help, labels=[*row.labels])
            for value, count in by_label.items():
                family.add_metric([value] if row.labels else [], count)
            yield family


def _samples(tally: Tally) -> _Samples:
    """The tally by the table's names. In a cluster, no service manages a host without an owner."""
    shared = any(tally.services.values())
    unowned = tally.hosts.get("", 0) if shared else 0
    return {
        "vmtune_cluster_migrations": _named(tally.migrations),
        "vmtune_cluster_applications": _named(tally.applications),
        "vmtune_cluster_evacuations": _named(tally.evacuations),
        "vmtune_cluster_queue_length": {
            "migrations": tally.waiting,
            "runs": tally.runs,
            "jobs": tally.orders,
        },
        "vmtune_cluster_vms": _named(tally.vms),
        "vmtune_cluster_drift_vms": tally.drift,
        "vmtune_cluster_drift_oldest_scan_timestamp_seconds": {
            "": tally.oldest_scan.timestamp() if tally.oldest_scan is not None else 0
        },
        "vmtune_cluster_hosts": {"yes": sum(tally.hosts.values()) - unowned, "no": unowned},
        "vmtune_cluster_untriaged_changes": {"": tally.untriaged},
        "vmtune_cluster_services": _named(tally.services) if shared else {},
    }


def _named(counts: Mapping[_S, int]) -> Mapping[str, float]:
    return {state.value: count for state, count in counts.items()}

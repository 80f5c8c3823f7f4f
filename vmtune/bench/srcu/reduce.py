"""The metrics of one run of updates, computed from its record."""

from __future__ import annotations

from collections.abc import Mapping

from vmtune.bench.model.runs.srcu_record import SrcuRecord
from vmtune.model.host.srcu_cost import GRACE_PERIODS_OF_A_PAIR


def reduce_srcu(record: SrcuRecord) -> Mapping[str, float]:
    """Every metric, by name: see :mod:`vmtune.bench.model.metrics.srcu` for what each means."""
    cost = record.cost
    idle_us = cost.idle_add.median_us + cost.idle_delete.median_us
    return {
        "grace_period_us": cost.grace_period_us,
        "srcu_boot_ms": cost.usual_boot_s * 1000,
        "srcu_boot_mean_ms": cost.mean_boot_s * 1000,
        "slot_add_us": cost.add.median_us,
        "slot_add_p99_us": cost.add.p99_us,
        "slot_delete_us": cost.delete.median_us,
        "slot_delete_p99_us": cost.delete.p99_us,
        "idle_grace_period_us": idle_us / GRACE_PERIODS_OF_A_PAIR,
        "srcu_elapsed_ms": record.ended_ms,
        "updates_timed": float(record.complete),
    }

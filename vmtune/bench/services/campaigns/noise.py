"""The noise floors of a machine, from a campaign of identical arms."""

from __future__ import annotations

from vmtune.bench.model.campaign.record import CampaignRecord
from vmtune.bench.model.metrics.table import METRICS, Direction
from vmtune.bench.report.build import Plan, criterion_of, sample_of
from vmtune.bench.services.comparisons.comparisons import Asked, ComparisonService
from vmtune.errors import InvalidInput
from vmtune.storage import Store
from vmtune.storage.repositories.bench.campaigns import StoredFloor


def calibrated(store: Store, record: CampaignRecord) -> list[StoredFloor]:
    """The noise floor of each cell and metric that has one. Blocks for some seconds.

    From the first two arms. A cell whose runs were made in several environments, or a metric that
    some run lacks, has none.
    """
    from vmtune.stats.noise import calibrate  # noqa: PLC0415 - takes a second

    report = ComparisonService(store).compared(Asked(campaign=str(record.id)))
    first, second = (arm.name for arm in record.campaign.arms[:2])
    plan = Plan("", (), (), primary_metric=record.campaign.primary_metric)
    found: list[StoredFloor] = []
    for cell in report.cells:
        a, b = (list(report.runs_of(cell.name, arm)) for arm in (first, second))
        environments = {run.environment for run in (*a, *b)}
        if len(environments) != 1 or not all(environments):
            continue
        for metric in report.metrics:
            row = METRICS[metric.name]
            values = [run.values[row.name] for run in (*a, *b) if row.name in run.values]
            if row.direction is Direction.NONE:
                continue
            criterion = criterion_of(row, values, plan)
            samples = (sample_of(first, a, row.name), sample_of(second, b, row.name))
            try:
                floor = calibrate(*samples, criterion, min(environments))
            except InvalidInput:
                continue  # too few blocks, or runs without this metric: it has no floor
            found.append(StoredFloor(cell.name, floor))
    return found

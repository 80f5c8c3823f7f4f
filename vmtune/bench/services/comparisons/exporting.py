"""A history as CSV for other tools."""

from __future__ import annotations

import csv
import io

from vmtune.bench.services.comparisons.setup_history import SetupHistory
from vmtune.bench.services.runs.files import RunFile


def history_csv(scenario: str, metric: str, setup: SetupHistory) -> RunFile:
    """A run on each line, oldest first. Runs without a value are left out; one that was given up
    has its limit for a value, and says so."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("time", "run", "environment", "at_limit", metric))
    for point in setup.points:
        lines.writerow(
            (
                point.at.isoformat(timespec="milliseconds"),
                point.run,
                point.fingerprint,
                int(point.at_limit),
                repr(point.value),
            )
        )
    name = f"{scenario.replace('/', '-')}-{metric}-{setup.id}.csv"
    return RunFile(name, text.getvalue().encode(), "text/csv")

"""The verdict on the demo's migrations, by a campaign's rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from vmtune.bench.model.runs.run import RunState
from vmtune.bench.report.build import Plan, build
from vmtune.bench.report.report import Report, ReportArm, ReportRun
from vmtune.client.commands.bench.compare import report_lines
from vmtune.client.connection.http import Document

_METRICS = ("total_time_ms", "downtime_ms", "transferred_bytes", "iterations")
_TIME = "total_time_ms"


def compared(records: Sequence[Document], profiles: Sequence[str], limit_ms: float) -> Report:
    """The migrations as blocks of one under each profile, in the order in which they ran.

    :param profiles: the baseline first.
    :param limit_ms: after which a migration was aborted: its time is more than that.
    """
    seen: dict[str, int] = {}
    runs = []
    for number, record in enumerate(records, 1):
        arm = str(record["profile"])
        seen[arm] = seen.get(arm, 0) + 1
        runs.append(_run(record, arm, seen[arm], number, limit_ms))
    plan = Plan(
        title="The demo's migrations",
        arms=tuple(ReportArm(name) for name in profiles),
        against=tuple((profiles[0], name) for name in profiles[1:]),
        primary_metric=_TIME,
    )
    return build(plan, runs, {}, datetime.now(UTC))


def _run(record: Document, arm: str, block: int, number: int, limit_ms: float) -> ReportRun:
    totals: Mapping[str, float] = record["totals"] or {}
    converged = record["state"] == "completed"
    values = {name: float(totals[name]) for name in _METRICS if totals.get(name) is not None}
    if not converged:
        values = {_TIME: limit_ms}
    return ReportRun(
        run=str(record["id"]),
        cell="",
        arm=arm,
        block=block,
        number=number,
        state=RunState.COMPLETED if converged else RunState.NOT_CONVERGED,
        environment="",
        values=values,
        censored=() if converged else (_TIME,),
        failure=str(record["failure"] or ""),
    )


def lines(records: Sequence[Document], profiles: Sequence[str], limit_ms: float) -> Iterator[str]:
    """The comparison as people read it."""
    yield from report_lines(compared(records, profiles, limit_ms))

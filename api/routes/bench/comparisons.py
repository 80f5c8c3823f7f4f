"""Comparisons of runs, and a metric over time."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Response

from vmtune.api.auth.reach import EVERYWHERE
from vmtune.api.auth.security import READ
from vmtune.api.responses import problems, saved_as
from vmtune.api.routes.common import After, Limit, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.bench.comparisons import ComparisonView, HistoryView
from vmtune.bench.services.comparisons.comparisons import Asked
from vmtune.bench.services.comparisons.files import ReportFormat
from vmtune.bench.services.comparisons.work import comparison_file, comparison_json

router = Router(tags=["comparisons"], dependencies=[EVERYWHERE])


async def asked(
    a: Annotated[
        str,
        Query(
            max_length=500,
            description="The base of the comparison: an arm of `campaign`, or runs by selectors: "
            "`scenario=plain/1gbs,profile=stock`; by scenario, family, profile, campaign, arm, "
            "fingerprint, host.",
        ),
    ] = "",
    b: Annotated[str, Query(max_length=500, description="What is compared to `a`, likewise.")] = "",
    campaign: Annotated[
        str,
        Query(
            max_length=200,
            description="By id, or the newest of that name; without `a` and `b` all pairs of arms.",
        ),
    ] = "",
    metric: Annotated[
        list[str],
        Query(description="Only these metrics; without a campaign the first is shown first."),
    ] = [],  # noqa: B006 - FastAPI copies it
    margin_percent: Annotated[
        float | None,
        Query(
            description="Smaller differences are equivalent; default: the campaign's margin, or 5."
        ),
    ] = None,
    expected: Annotated[
        list[str],
        Query(
            description="Expected differences of the environments, as a path such as "
            "`qemu.version`, or `all`. Other differences prevent a verdict."
        ),
    ] = [],  # noqa: B006 - FastAPI copies it
    reference: Annotated[
        str,
        Query(
            max_length=200,
            description="A published source, or SOURCE/TABLE, to show next to the results.",
        ),
    ] = "",
) -> Asked:
    """What is compared."""
    return Asked(
        a=a,
        b=b,
        campaign=campaign,
        metrics=tuple(metric),
        margin_percent=margin_percent,
        expected=tuple("" if each == "all" else each for each in expected),
        reference=reference,
    )


Wanted = Annotated[Asked, Depends(asked)]


@router.get(
    "/comparisons",
    response_model=ComparisonView,
    responses=problems(404),
    dependencies=[READ],
)
async def get_comparison(on: Services, wanted: Wanted) -> Response:
    """Compare B to A: effects with confidence intervals, verdicts, differences of the
    environments, and all values they are computed from."""
    content = await on.heavy.run(comparison_json, wanted)
    return Response(content, media_type="application/json")


class _File(Response):
    media_type = "application/octet-stream"


@router.get(
    "/comparisons/report",
    responses=problems(404),
    response_class=_File,
    dependencies=[READ],
)
async def get_comparison_report(
    on: Services,
    wanted: Wanted,
    format: Annotated[
        ReportFormat, Query(description="`csv` has only the values of the runs.")
    ] = ReportFormat.HTML,
) -> Response:
    """The comparison as a file: a self-contained HTML page, Markdown, or the values as CSV."""
    file = await on.heavy.run(comparison_file, wanted, format)
    headers = saved_as(file.name, "inline")
    if format is ReportFormat.HTML:
        headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
    return Response(file.content, media_type=file.media_type, headers=headers)


@router.get("/history", responses=problems(404), dependencies=[READ])
async def get_history(
    on: Services,
    scenario: Annotated[str, Query(max_length=200)],
    metric: Annotated[str, Query(max_length=100)] = "total_time_ms",
    profile: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = 20,
    after: After = None,
) -> HistoryView:
    """A metric of a scenario over time, in the newest 2,000 runs that have it, with its change
    points (from 20 runs on). An item is a setup with all its runs; the one with most runs comes
    first."""
    found = await on.history.history(scenario, metric, profile, after, limit)
    return HistoryView.of(found)

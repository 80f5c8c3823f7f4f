"""Drift: VMs whose settings differ from what was applied, and scans for them."""

from __future__ import annotations

from fastapi import Response

from vmtune.api.auth.security import READ, Who
from vmtune.api.http.idempotency import KEYED
from vmtune.api.responses import LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, After, Limit, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.drift import (
    DriftPage,
    DriftScanAsked,
    DriftScanCreate,
    DriftScanPage,
    DriftScanView,
    DriftView,
)

router = Router(tags=["drift"])


@router.post(
    "/drift-scans",
    status_code=202,
    responses=problems(*WITH_BODY, 404, 409) | with_headers(202, LOCATION),
    dependencies=[READ, KEYED],
)
async def start_drift_scans(
    on: Services, who: Who, response: Response, body: DriftScanCreate | None = None
) -> DriftScanAsked:
    """Start a drift scan: compare every running VM of a host, or of all hosts, to its profile.
    It only reads. The service also scans at the interval of the setting
    `drift_scan_interval_s`."""
    response.headers["Location"] = f"{PREFIX}/drift-scans"
    if body is not None and body.host is not None:
        on.access.guard.whole_host(who, body.host)
        await on.hosts.get(body.host)
        return DriftScanAsked(hosts=list(await on.drift.ask([body.host])))
    on.access.guard.whole_hosts(who)
    return DriftScanAsked(hosts=list(await on.drift.ask(who.rights.reach.hosts)))


@router.get("/drift-scans", responses=problems(404), dependencies=[READ])
async def list_drift_scans(
    on: Services, who: Who, host: str | None = None, limit: Limit = 50, after: After = None
) -> DriftScanPage:
    """The last scan of each host, and whether another one is pending. Contacts no host."""
    if host is not None:
        on.access.guard.host(who, host)
        await on.hosts.get(host)
    reach = who.rights.reach
    if reach.labels:  # a scan is of all VMs of a host
        return DriftScanPage(items=[], next=None)
    page = await on.drift.list(host, after, limit, reach)
    return DriftScanPage(items=[DriftScanView.of(each) for each in page.items], next=page.next)


@router.get("/drifts", responses=problems(404), dependencies=[READ])
async def list_drifts(
    on: Services, who: Who, host: str | None = None, limit: Limit = 50, after: After = None
) -> DriftPage:
    """The VMs that drift, since when, and in which tunables, as of the last scan. Contacts no
    host."""
    if host is not None:
        on.access.guard.host(who, host)
        await on.hosts.get(host)
    page = await on.drift.drifts(host, after, limit, who.rights.reach)
    return DriftPage(items=[DriftView.of(each) for each in page.items], next=page.next)

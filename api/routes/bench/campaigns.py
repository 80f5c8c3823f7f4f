"""Campaigns: create, list, pause, resume, cancel."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Body, Path, Query, Response

from vmtune.api.auth.reach import EVERYWHERE
from vmtune.api.auth.security import BENCH, READ, Who
from vmtune.api.http.bodies import LARGE_BODY
from vmtune.api.http.idempotency import KEYED, keyed
from vmtune.api.responses import ASKS_A_HOST, LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, After, Limit, NameSearch, Services, Whole
from vmtune.api.routes.router import Router
from vmtune.api.schemas.bench.campaigns import (
    CampaignDetail,
    CampaignForecast,
    CampaignPage,
    CampaignView,
    PlannedRunPage,
    PlannedRunView,
)
from vmtune.api.wiring.deps import Container
from vmtune.api.wiring.loads import check_may_load
from vmtune.bench.model.campaign.record import CampaignState
from vmtune.model.idempotency import Begun
from vmtune.services.computed_pages import part_in_order

router = Router(prefix="/campaigns", tags=["campaigns"], dependencies=[EVERYWHERE])
Which = Annotated[
    str, Path(max_length=200, description="Id, or name (the newest campaign of that name).")
]
Plan = Annotated[
    dict[str, Any],
    Body(
        description="The content of a campaign file as JSON: name, scenario, arms, blocks, seed, "
        "primary_metric, margin_percent, cells and more; or a matrix, with block, boot or srcu in "
        "place of scenario and cells.",
        examples=[
            {
                "name": "stock-against-tuned",
                "scenario": "plain/1gbs.quick",
                "blocks": 6,
                "arms": [{"name": "stock"}, {"name": "tuned", "profile": "fast"}],
            }
        ],
    ),
]


@router.get("", responses=problems(), dependencies=[READ])
async def list_campaigns(
    on: Services,
    name: str | None = None,
    state: Annotated[list[CampaignState], Query(description="Any of these states.")] = [],  # noqa: B006 - FastAPI copies it
    search: NameSearch = "",
    limit: Limit = 50,
    after: After = None,
) -> CampaignPage:
    """Campaigns, newest first."""
    page = await on.campaigns.list(name, tuple(state), after, limit, search)
    return CampaignPage(items=[CampaignView.of(each) for each in page.items], next=page.next)


async def _begun(on: Container, id: str) -> CampaignDetail:
    return CampaignDetail.of_status(await on.campaigns.get(id))


@router.post(
    "",
    status_code=202,
    responses=problems(*WITH_BODY, *ASKS_A_HOST) | with_headers(202, LOCATION),
    dependencies=[BENCH, LARGE_BODY, keyed(Begun.CAMPAIGN, _begun, "/campaigns/{id}")],
)
async def start_campaign(on: Services, who: Who, body: Plan, response: Response) -> CampaignDetail:
    """Start a campaign: its runs are executed one after the other, in randomised blocks, and
    continue after a restart of the service. Blocks, primary metric, margin and profile revisions
    are fixed from now on. A campaign that loads a running VM needs the scope `apply` too."""
    check_may_load(who, body)
    status = await on.campaigns.start(body)
    response.headers["Location"] = f"{PREFIX}/campaigns/{status.record.id}"
    return CampaignDetail.of_status(status)


@router.post(
    "/forecast",
    responses=problems(*WITH_BODY, *ASKS_A_HOST),
    dependencies=[READ, LARGE_BODY],
)
async def forecast_campaign(on: Services, who: Who, body: Plan) -> CampaignForecast:
    """Forecast the detectable difference and the duration of a campaign, without starting it."""
    check_may_load(who, body)
    return CampaignForecast.of_parts(*await on.campaigns.forecast_of(body))


@router.get("/{campaign}", responses=problems(404), dependencies=[READ])
async def get_campaign(on: Services, campaign: Which) -> CampaignDetail:
    """One campaign and its progress."""
    return CampaignDetail.of_status(await on.campaigns.get(campaign))


@router.get("/{campaign}/plan", responses=problems(404), dependencies=[READ])
async def list_planned_runs(
    on: Services,
    campaign: Which,
    limit: Annotated[Whole, Query(ge=1, le=2000, description="Most items on the page.")] = 1000,
    after: After = None,
) -> PlannedRunPage:
    """The runs of a campaign in order of execution, future ones included, with their states."""
    found = await on.campaigns.plan(campaign)
    page = part_in_order(found, "plan", lambda each: str(each.planned.number), after, limit)
    return PlannedRunPage(items=[PlannedRunView.of(each) for each in page.items], next=page.next)


@router.delete("/{campaign}", status_code=202, responses=problems(404, 409), dependencies=[BENCH])
async def cancel_campaign(on: Services, campaign: Which) -> CampaignView:
    """Cancel a campaign. The current run is cancelled; completed runs are kept."""
    return CampaignView.of(await on.campaigns.cancel(campaign))


@router.post("/{campaign}/pause", responses=problems(404, 409), dependencies=[BENCH, KEYED])
async def pause_campaign(on: Services, campaign: Which) -> CampaignView:
    """Pause a campaign: start no more runs. The current run continues to its end."""
    return CampaignView.of(await on.campaigns.pause(campaign))


@router.post("/{campaign}/resume", responses=problems(404, 409), dependencies=[BENCH, KEYED])
async def resume_campaign(on: Services, campaign: Which) -> CampaignView:
    """Resume a paused campaign."""
    return CampaignView.of(await on.campaigns.resume(campaign))

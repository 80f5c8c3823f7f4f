"""Studies: create, list, pause, resume, cancel."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Body, Path, Query, Response

from vmtune.api.auth.reach import EVERYWHERE
from vmtune.api.auth.security import BENCH, READ, Who, check_scope
from vmtune.api.http.bodies import LARGE_BODY
from vmtune.api.http.idempotency import KEYED, keyed
from vmtune.api.responses import ASKS_A_HOST, LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, After, Limit, NameSearch, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.bench.studies import (
    StudyAnalysisView,
    StudyDetail,
    StudyPage,
    StudyPlan,
    StudyView,
    TrialPage,
    TrialView,
)
from vmtune.api.wiring.deps import Container
from vmtune.api.wiring.loads import check_may_load
from vmtune.bench.model.tune.kept import StudyState
from vmtune.model.access.scopes import Scope
from vmtune.model.idempotency import Begun
from vmtune.services.computed_pages import part_in_order

router = Router(prefix="/studies", tags=["studies"], dependencies=[EVERYWHERE])
Which = Annotated[
    str, Path(max_length=200, description="Id, or name (the newest study of that name).")
]
Order = Annotated[
    dict[str, Any],
    Body(
        description="The content of a study file as JSON: name, scenario, objective, and where "
        "they differ from the defaults space, budget, margin_percent, profile, limits and more.",
        examples=[
            {
                "name": "faster-over-the-link",
                "scenario": "plain/1gbs.quick",
                "objective": "minimise total_time_ms where guest_silence_ms <= 300 and completed",
                "space": {
                    "multifd": {},
                    "multifd_channels": {"low": 1, "high": 8},
                },
                "budget": {"runs": 80},
            }
        ],
    ),
]


@router.get("", responses=problems(), dependencies=[READ])
async def list_studies(
    on: Services,
    name: str | None = None,
    state: Annotated[list[StudyState], Query(description="Any of these states.")] = [],  # noqa: B006 - FastAPI copies it
    search: NameSearch = "",
    limit: Limit = 50,
    after: After = None,
) -> StudyPage:
    """Studies, newest first."""
    page = await on.studies.list(name, tuple(state), after, limit, search)
    return StudyPage(items=[StudyView.of(each) for each in page.items], next=page.next)


async def _begun(on: Container, id: str) -> StudyDetail:
    return StudyDetail.of_study(await on.studies.get(id))


@router.post(
    "",
    status_code=202,
    responses=problems(*WITH_BODY, *ASKS_A_HOST) | with_headers(202, LOCATION),
    dependencies=[BENCH, LARGE_BODY, keyed(Begun.STUDY, _begun, "/studies/{id}")],
)
async def start_study(on: Services, who: Who, body: Order, response: Response) -> StudyDetail:
    """Start a study: it searches for better settings, and holds the best few against the default
    and the current profile in a campaign of fresh runs. A winner becomes a profile that is
    assigned to nothing. One study has the machine at a time, and it continues after a restart of
    the service. It writes a profile, and so needs the scope `profile` too."""
    check_scope(who, Scope.PROFILE)
    check_may_load(who, body)
    study = await on.studies.start(body)
    response.headers["Location"] = f"{PREFIX}/studies/{study.kept.id}"
    return StudyDetail.of_study(study)


@router.post("/plan", responses=problems(*WITH_BODY, *ASKS_A_HOST), dependencies=[READ, LARGE_BODY])
async def plan_study(on: Services, who: Who, body: Order) -> StudyPlan:
    """Show what a study would vary and begin with on this machine, without starting it."""
    check_may_load(who, body)
    return StudyPlan.of(await on.studies.filled_in(body))


@router.get("/{study}", responses=problems(404), dependencies=[READ])
async def get_study(on: Services, study: Which) -> StudyDetail:
    """One study, its progress and its result."""
    return StudyDetail.of_study(await on.studies.get(study))


@router.get("/{study}/trials", responses=problems(404), dependencies=[READ])
async def list_trials(
    on: Services, study: Which, limit: Limit = 50, after: After = None
) -> TrialPage:
    """The settings that a study tried, with the run of each."""
    found = await on.studies.get(study)
    page = part_in_order(found.trials, "trials", lambda each: str(each.number), after, limit)
    return TrialPage(items=[TrialView.of(each, found) for each in page.items], next=page.next)


@router.get("/{study}/analysis", responses=problems(404), dependencies=[READ])
async def get_study_analysis(on: Services, study: Which) -> StudyAnalysisView:
    """What a study's trials say so far: the importance of each tunable, and the trials that trade
    its goals against each other best. These are the search's own figures, and no verdict."""
    return StudyAnalysisView.of(*await on.studies.analysis(study))


@router.delete("/{study}", status_code=202, responses=problems(404, 409), dependencies=[BENCH])
async def cancel_study(on: Services, study: Which) -> StudyView:
    """Cancel a study. The current run is cancelled; what was measured is kept."""
    return StudyView.of(await on.studies.cancel(study))


@router.post("/{study}/pause", responses=problems(404, 409), dependencies=[BENCH, KEYED])
async def pause_study(on: Services, study: Which) -> StudyView:
    """Pause a study: start no more runs. The current run continues to its end, and other studies
    may run meanwhile."""
    return StudyView.of(await on.studies.pause(study))


@router.post("/{study}/resume", responses=problems(404, 409), dependencies=[BENCH, KEYED])
async def resume_study(on: Services, study: Which) -> StudyView:
    """Resume a paused study."""
    return StudyView.of(await on.studies.resume(study))

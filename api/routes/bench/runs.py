"""Benchmark runs: create, list, cancel, read, export and import."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import HTTPException, Query, Request, Response
from starlette.requests import ClientDisconnect

from vmtune.api.auth.reach import EVERYWHERE
from vmtune.api.auth.security import BENCH, READ, Who
from vmtune.api.http.bodies import LARGE_BODY
from vmtune.api.http.idempotency import keyed
from vmtune.api.responses import (
    ASKS_A_HOST,
    LOCATION,
    WITH_BODY,
    problems,
    saved_as,
    with_headers,
)
from vmtune.api.routes.common import PREFIX, After, Limit, Moment, Name, Services, Whole
from vmtune.api.routes.router import Router
from vmtune.api.schemas.bench.runs import (
    CpuMarkPage,
    CpuMarkView,
    CpuSamplePage,
    CpuSampleView,
    EnvironmentView,
    GuestPassPage,
    GuestPassView,
    ProcessSamplePage,
    ProcessSampleView,
    RunCreate,
    RunDetail,
    RunPage,
    RunSamplePage,
    RunView,
    SilencePage,
    SilenceView,
)
from vmtune.api.schemas.controlled import RoundPage, RoundView
from vmtune.api.schemas.migrations import samples_json
from vmtune.api.wiring.deps import Container
from vmtune.api.wiring.loads import check_may_load
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.runs.series import Series
from vmtune.bench.services.runs.files import MEDIA_TYPES, FileFormat, exported_run, plotted_run
from vmtune.bench.services.runs.runs import QueuedRun, RunRequest
from vmtune.documents.dataclass_json import to_json
from vmtune.model.idempotency import Begun
from vmtune.storage.repositories.bench.run_rows import RunFilter

router = Router(tags=["runs"], dependencies=[EVERYWHERE])
Rows = Annotated[Whole, Query(ge=1, le=1000, description="Most rows on the page.")]


@router.get("/runs", responses=problems(), dependencies=[READ])
async def list_runs(
    on: Services,
    scenario: str | None = None,
    family: str | None = None,
    profile: str | None = None,
    state: Annotated[list[RunState], Query(description="Any of these states.")] = [],  # noqa: B006 - FastAPI copies it
    fingerprint: Annotated[str | None, Query(description="Fingerprint of the environment.")] = None,
    host: Annotated[str | None, Query(description="Name of the machine.")] = None,
    campaign: UUID | None = None,
    arm: str | None = None,
    since: Annotated[Moment | None, Query(description="Created then or later.")] = None,
    study: UUID | None = None,
    search: Annotated[
        str,
        Query(
            max_length=200,
            description="A part of the scenario's name, the arm's or the profile's, whatever the "
            "case, or the beginning of the run's UUID.",
        ),
    ] = "",
    limit: Limit = 50,
    after: After = None,
) -> RunPage:
    """Runs with their metrics, newest first."""
    wanted = RunFilter(
        scenario,
        family,
        profile,
        tuple(state),
        fingerprint,
        host,
        campaign,
        arm,
        since,
        study,
        search,
    )
    page = await on.runs.list(wanted, after, limit)
    return RunPage(items=[RunView.of(run) for run in page.items], next=page.next)


async def _begun(on: Container, id: str) -> RunView:
    return RunView.of((await on.runs.get(UUID(id))).queued)


@router.post(
    "/runs",
    status_code=202,
    responses=problems(*WITH_BODY, *ASKS_A_HOST) | with_headers(202, LOCATION),
    dependencies=[BENCH, keyed(Begun.RUN, _begun, "/runs/{id}")],
)
async def start_run(on: Services, who: Who, body: RunCreate, response: Response) -> RunView:
    """Start a run. It waits until no other run is active on this machine, and is executed as a
    job. If the service is killed meanwhile, it records the run as interrupted at its next start.

    A block run on a running VM (`target` in the scenario) needs the scope `apply` too. The VM is
    reserved until the run ends: no profile can be applied to it and no migration can start
    meanwhile. Its own nodes are exported read-only."""
    check_may_load(who, body.scenario, body.changes)
    request = RunRequest(
        scenario=body.scenario,
        changes=body.changes,
        profile=body.profile,
        revision=body.revision,
        values=body.values,
        testbed=body.testbed,
        qemu=body.qemu,
        kvm=body.kvm,
        overrides=tuple(body.overrides),
    )
    queued = await on.runs.start(request)
    response.headers["Location"] = f"{PREFIX}/runs/{queued.run.id}"
    return RunView.of(queued)


@router.post(
    "/runs/import",
    status_code=201,
    responses=problems(*WITH_BODY, 409) | with_headers(201, LOCATION),
    dependencies=[BENCH, LARGE_BODY],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "additionalProperties": True,
                        "description": "Format of the file.",
                        "title": "Document",
                    }
                }
            },
        }
    },
)
async def import_run(
    on: Services,
    request: Request,
    response: Response,
    name: Annotated[
        str, Query(max_length=200, description="Name of the file; stored with the run.")
    ] = "",
) -> RunView:
    """Import an exported run, or a report of QEMU's guestperf. A run that exists already is
    refused: it would count twice. One file is read at a time."""
    try:
        run = await on.runs.take_over(request.stream(), name)
    except ClientDisconnect:  # nobody waits for the answer
        raise HTTPException(400) from None
    response.headers["Location"] = f"{PREFIX}/runs/{run.id}"
    return RunView.of(QueuedRun(run))


@router.get("/runs/{run}", responses=problems(404), dependencies=[READ])
async def get_run(on: Services, run: UUID) -> RunDetail:
    """One run; its series have routes of their own."""
    return RunDetail.of_details(await on.runs.get(run))


@router.delete("/runs/{run}", status_code=202, responses=problems(404, 409), dependencies=[BENCH])
async def cancel_run(on: Services, run: UUID) -> RunView:
    """Cancel a run. Its state is cancelled once all its processes have stopped."""
    return RunView.of(await on.runs.cancel(run))


@router.get(
    "/runs/{run}/samples",
    response_model=RunSamplePage,
    responses=problems(404),
    dependencies=[READ],
)
async def list_run_samples(
    on: Services, run: UUID, limit: Rows = 1000, after: After = None
) -> Response:
    """Samples of its migration, oldest first."""
    page = await on.runs.series(run, Series.SAMPLES, after, limit)
    return Response(samples_json(page), media_type="application/json")


@router.get("/runs/{run}/passes", responses=problems(404), dependencies=[READ])
async def list_run_passes(
    on: Services, run: UUID, limit: Rows = 1000, after: After = None
) -> GuestPassPage:
    """Passes of its guest's workers over their memory, oldest first."""
    page = await on.runs.series(run, Series.PASSES, after, limit)
    rows = [GuestPassView(**to_json(row)) for row in page.items]
    return GuestPassPage(items=rows, next=page.next)


@router.get("/runs/{run}/silences", responses=problems(404), dependencies=[READ])
async def list_run_silences(
    on: Services, run: UUID, limit: Rows = 1000, after: After = None
) -> SilencePage:
    """Gaps in its guest's heartbeat, oldest first."""
    page = await on.runs.series(run, Series.SILENCES, after, limit)
    return SilencePage(items=[SilenceView(**to_json(r)) for r in page.items], next=page.next)


@router.get("/runs/{run}/cpu", responses=problems(404), dependencies=[READ])
async def list_run_cpu(
    on: Services, run: UUID, limit: Rows = 1000, after: After = None
) -> CpuSamplePage:
    """CPU time of its two QEMUs, oldest first."""
    page = await on.runs.series(run, Series.CPU, after, limit)
    return CpuSamplePage(items=[CpuSampleView(**to_json(r)) for r in page.items], next=page.next)


@router.get("/runs/{run}/rounds", responses=problems(404), dependencies=[READ])
async def list_run_rounds(
    on: Services, run: UUID, limit: Rows = 1000, after: After = None
) -> RoundPage:
    """Rounds of its dirty-ring reaper, oldest first; none without a reaper."""
    page = await on.runs.series(run, Series.ROUNDS, after, limit)
    return RoundPage(items=[RoundView.from_record(r) for r in page.items], next=page.next)


@router.get("/runs/{run}/processes", responses=problems(404), dependencies=[READ])
async def list_run_processes(
    on: Services, run: UUID, limit: Rows = 1000, after: After = None
) -> ProcessSamplePage:
    """Samples of the QEMU of a block run, oldest first; none for other kinds."""
    page = await on.runs.series(run, Series.PROCESSES, after, limit)
    rows = [ProcessSampleView(**to_json(row)) for row in page.items]
    return ProcessSamplePage(items=rows, next=page.next)


@router.get("/runs/{run}/cpu_marks", responses=problems(404), dependencies=[READ])
async def list_run_cpu_marks(
    on: Services, run: UUID, limit: Rows = 1000, after: After = None
) -> CpuMarkPage:
    """CPU time of the QEMU of a block run, oldest first; none for other kinds."""
    page = await on.runs.series(run, Series.CPU_MARKS, after, limit)
    return CpuMarkPage(items=[CpuMarkView(**to_json(row)) for row in page.items], next=page.next)


class _Html(Response):
    media_type = "text/html"


@router.get(
    "/runs/{run}/plot",
    responses=problems(404),
    response_class=_Html,
    dependencies=[READ],
)
async def plot_run(on: Services, run: UUID) -> Response:
    """Plots of an ended run, as a self-contained HTML page."""
    page = await on.heavy.run(plotted_run, run)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return _Html(page, headers={"Content-Security-Policy": policy})


@router.get(
    "/runs/{run}/export",
    responses=problems(404) | {200: {"content": {media_type: {} for media_type in MEDIA_TYPES}}},
    response_class=Response,
    dependencies=[READ],
)
async def export_run(
    on: Services,
    run: UUID,
    format: Annotated[
        FileFormat,
        Query(
            description="`json`, `csv.gz` and `parquet` (needs the extra of that name) contain "
            "the whole run; `guestperf` what its format supports."
        ),
    ] = FileFormat.JSON,
) -> Response:
    """Export an ended run as a file."""
    file = await on.heavy.run(exported_run, run, format)
    return Response(file.content, media_type=file.media_type, headers=saved_as(file.name))


@router.get("/environments/{fingerprint}", responses=problems(404), dependencies=[READ])
async def get_environment(on: Services, fingerprint: Name) -> EnvironmentView:
    """The environment with this fingerprint."""
    found = await on.runs.environment(fingerprint)
    return EnvironmentView(fingerprint=fingerprint, environment=dict(found))

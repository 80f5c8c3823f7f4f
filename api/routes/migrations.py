"""Live migrations: started, followed, changed on the way, aborted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import Query, Response

from vmtune.api.auth.reach import MigrationInReach
from vmtune.api.auth.security import MIGRATE, READ, Who
from vmtune.api.http.idempotency import KEYED, keyed
from vmtune.api.http.kept_answers import FOLLOWED, STORED
from vmtune.api.responses import ASKS_A_HOST, KEPT, LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, After, Limit, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.controlled import (
    MigrationChange,
    MigrationRecovery,
    RoundPage,
    RoundView,
)
from vmtune.api.schemas.migrations import (
    DiskSamplePage,
    DiskSampleView,
    MigrationCreate,
    MigrationPage,
    MigrationView,
    SamplePage,
    samples_json,
)
from vmtune.api.wiring.deps import Container
from vmtune.model.idempotency import Begun
from vmtune.model.migration.record import Migration, MigrationSort, MigrationState
from vmtune.model.migration.steps import StepAction
from vmtune.storage import Page

router = Router(prefix="/migrations", tags=["migrations"])
LaterThan = Annotated[
    int | None,
    Query(
        ge=-(2**53),
        le=2**53,
        description="Start after this `at_ms`; to watch a running migration.",
    ),
]


async def _views(on: Services, records: Sequence[Migration]) -> list[MigrationView]:
    """The records, and the queue positions of those that wait."""
    waiting = [record.id for record in records if record.state is MigrationState.QUEUED]
    positions = await on.admission.positions(waiting) if waiting else {}
    return [MigrationView.of(record, on.tunables, positions.get(record.id)) for record in records]


async def _view(on: Services, record: Migration) -> MigrationView:
    (view,) = await _views(on, [record])
    return view


@router.get("", responses=problems() | KEPT, dependencies=[READ, STORED])
async def list_migrations(
    on: Services,
    who: Who,
    vm: UUID | None = None,
    host: Annotated[str | None, Query(description="Source or destination.")] = None,
    state: MigrationState | None = None,
    profile: str | None = None,
    search: Annotated[
        str,
        Query(
            max_length=200,
            description="A part of the VM's name, the profile's or a host's, whatever the case, or "
            "the beginning of the migration's UUID or the VM's.",
        ),
    ] = "",
    downtime_exceeded: Annotated[
        bool | None, Query(description="Only those whose downtime exceeded its limit, or did not.")
    ] = None,
    intent_broken: Annotated[
        bool | None, Query(description="Only those that did not keep their intent, or did.")
    ] = None,
    sort: MigrationSort = MigrationSort.NEWEST,
    limit: Limit = 50,
    after: After = None,
) -> MigrationPage:
    """Migrations, newest first unless `sort` says otherwise."""
    page = await on.queries.migrations(
        vm, host, state, profile, after, limit, who.rights.reach, search, downtime_exceeded,
        intent_broken, sort,
    )  # fmt: skip
    return MigrationPage(items=await _views(on, page.items), next=page.next)


async def _begun(on: Container, id: str) -> MigrationView:
    return await _view(on, await on.queries.migration(UUID(id)))


@router.post(
    "",
    status_code=202,
    responses=problems(*WITH_BODY, *ASKS_A_HOST) | with_headers(202, LOCATION),
    dependencies=[MIGRATE, keyed(Begun.MIGRATION, _begun, "/migrations/{id}")],
)
async def start_migration(
    on: Services, who: Who, body: MigrationCreate, response: Response
) -> MigrationView:
    """Start a live migration. It is a job that survives a restart of the service."""
    await on.access.guard.vm(who, body.vm)
    on.access.guard.host(who, body.destination)
    record = await on.migrations.start(
        body.vm,
        body.destination,
        body.profile,
        body.revision,
        overrides=body.overrides,
        values=body.values,
        steps=body.steps,
        priority=body.priority,
        intent=body.intent,
        shadow=body.shadow,
    )
    response.headers["Location"] = f"{PREFIX}/migrations/{record.id}"
    return await _view(on, record)


@router.get("/{migration}", responses=problems(404) | KEPT, dependencies=[READ, STORED])
async def get_migration(on: Services, migration: MigrationInReach) -> MigrationView:
    """One migration and its current state."""
    return await _view(on, migration)


@router.patch("/{migration}", responses=problems(*WITH_BODY, *ASKS_A_HOST), dependencies=[MIGRATE])
async def change_migration(
    on: Services, who: Who, migration: MigrationInReach, body: MigrationChange
) -> MigrationView:
    """Change values of a running migration, switch it to post-copy, or pause its guest until it
    ends. The change is recorded like a step; values are restored if the migration does not
    complete. `controls` of the record says what is possible."""
    on.access.guard.host(who, migration.source)
    action = StepAction(body.do.value) if body.do is not None else None
    return await _view(on, await on.migrations.change(migration.id, body.values, action))


@router.delete(
    "/{migration}", status_code=202, responses=problems(*ASKS_A_HOST), dependencies=[MIGRATE]
)
async def abort_migration(on: Services, who: Who, migration: MigrationInReach) -> MigrationView:
    """Abort a migration. `abort` of the record says whether the abort was in time."""
    on.access.guard.host(who, migration.source)
    return await _view(on, await on.migrations.abort(migration.id))


@router.post(
    "/{migration}/recovery",
    responses=problems(*WITH_BODY, *ASKS_A_HOST),
    dependencies=[MIGRATE, KEYED],
)
async def recover_migration(
    on: Services, who: Who, migration: MigrationInReach, body: MigrationRecovery
) -> MigrationView:
    """Give a migration that is paused in post-copy a new connection between its two QEMUs. The
    answer comes once the migration goes on, or with the reason why it stays paused. Each attempt
    is in `step_records`."""
    on.access.guard.host(who, migration.source)
    return await _view(on, await on.migrations.recover(migration.id, body.address))


@router.get(
    "/{migration}/samples",
    response_model=SamplePage,
    responses=problems(404) | KEPT,
    dependencies=[READ, FOLLOWED],
)
async def list_samples(
    on: Services,
    who: Who,
    migration: UUID,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    after: After = None,
    later_than_ms: LaterThan = None,
) -> Response:
    """Samples, oldest first. Samples of the same millisecond stay on one page, which may
    therefore exceed *limit* by a few."""
    earliest = -1 if later_than_ms is None else later_than_ms
    asked, known = (migration, limit, after, earliest), on.known_samples
    while True:
        version = known.version(asked)
        stored, following = await on.queries.samples(migration, after, limit, earliest, version)
        await on.access.guard.migration(who, stored.of)
        if stored.taken is not None:
            body = samples_json(Page(stored.taken, following), stored.of)
            if later_than_ms is None:  # who follows a migration asks for each page once
                known.keep(asked, stored.version, body)
        elif (held := known.body(asked, stored.version)) is not None:
            body = held
        else:
            continue  # it was forgotten meanwhile
        return Response(body, media_type="application/json")


@router.get(
    "/{migration}/disk-samples", responses=problems(404) | KEPT, dependencies=[READ, FOLLOWED]
)
async def list_disk_samples(
    on: Services,
    migration: MigrationInReach,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    after: After = None,
    later_than_ms: LaterThan = None,
) -> DiskSamplePage:
    """Samples of the disks that a migration copies, one of each disk a second, oldest first. Those
    of the same millisecond stay on one page."""
    page = await on.queries.disk_samples(migration.id, after, limit, later_than_ms)
    return DiskSamplePage(
        items=[DiskSampleView.from_record(each) for each in page.items], next=page.next
    )


@router.get("/{migration}/rounds", responses=problems(404) | KEPT, dependencies=[READ, STORED])
async def list_rounds(
    on: Services,
    migration: MigrationInReach,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    after: After = None,
    later_than_ms: LaterThan = None,
) -> RoundPage:
    """Rounds of the dirty-ring reaper, oldest first; only the newest are stored."""
    page = await on.queries.rounds(migration.id, after, limit, later_than_ms)
    return RoundPage(items=[RoundView.from_record(r) for r in page.items], next=page.next)

"""VMs: listed, probed, labelled, planned for, applied to, verified."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import Query, Response

from vmtune.api.auth.reach import VmInReach
from vmtune.api.auth.security import APPLY, HOST, READ, Who
from vmtune.api.http.idempotency import KEYED, keyed
from vmtune.api.http.kept_answers import LIVE
from vmtune.api.responses import ASKS_A_HOST, KEPT, LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, After, Limit, Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.applications import ApplicationCreate, ApplicationView, VerificationView
from vmtune.api.schemas.common import problems_of
from vmtune.api.schemas.forecasts import MigrationForecastCreate, MigrationForecastView
from vmtune.api.schemas.intents import IntentPlanView
from vmtune.api.schemas.plans import PlanCreate, PlanView
from vmtune.api.schemas.vms import (
    EffectiveView,
    ExplanationView,
    LabelsReplace,
    LabelsView,
    VmDetail,
    VmPage,
    VmView,
    readings_of,
)
from vmtune.api.wiring.deps import Container
from vmtune.model.access.scopes import Identity
from vmtune.model.host.facts import VmState
from vmtune.model.host.inventory import VmSort
from vmtune.model.idempotency import Begun
from vmtune.model.plan.tuning_state import TuningState
from vmtune.services.inventory_lists import VmFilter, parse_labels

router = Router(prefix="/vms", tags=["vms"])
Search = Annotated[
    str,
    Query(
        max_length=200,
        description="A part of the name, whatever the case, or the beginning of the UUID.",
    ),
]
Labels = Annotated[list[str], Query(description="key=value; repeatable.")]


async def list_page(
    on: Container,
    who: Identity,
    wanted: VmFilter,
    limit: int,
    after: str | None,
    sort: VmSort = VmSort.NAME,
) -> VmPage:
    """A page of VMs as the API shows it."""
    listed = await on.inventory.vms(wanted, after, limit, who.rights.reach, sort)
    migrating = await on.queries.migrating(vm.summary.uuid for vm in listed.page.items)
    return VmPage(
        items=[
            VmView.of(
                vm,
                listed.tunings.get(vm.summary.uuid),
                on.hosts.contacts.of(vm.host),
                migrating.get(vm.summary.uuid),
            )
            for vm in listed.page.items
        ],
        next=listed.page.next,
        tuning_counts=dict(listed.counts),
        problems=problems_of(listed.problems),
    )


@router.get("", responses=problems(*ASKS_A_HOST) | KEPT, dependencies=[READ, LIVE])
async def list_vms(
    on: Services,
    who: Who,
    host: str | None = None,
    name: Annotated[str | None, Query(description="The whole name.")] = None,
    search: Search = "",
    state: VmState | None = None,
    tuning_state: TuningState | None = None,
    label: Labels = [],  # noqa: B006 - FastAPI copies it
    sort: VmSort = VmSort.NAME,
    limit: Limit = 50,
    after: After = None,
) -> VmPage:
    """The current VMs of all hosts with their tuning states as of the last check. VMs of hosts
    that do not answer are listed as last seen, with `state` unknown and the reason."""
    if host is not None:
        on.access.guard.host(who, host)
    wanted = VmFilter(host, name, state, parse_labels(label), tuning_state, search)
    return await list_page(on, who, wanted, limit, after, sort)


@router.get("/{vm}", responses=problems(*ASKS_A_HOST), dependencies=[READ])
async def get_vm(on: Services, vm: VmInReach) -> VmDetail:
    """A VM and its QEMU, probed now, with the current values of all readable tunables."""
    host, _, facts = await on.hosts.locate(vm)
    migrating = await on.queries.migrating([vm])
    return VmDetail.of(
        host,
        facts,
        await on.queries.labels(vm),
        await on.inventory.tuning(vm),
        on.tunables,
        migrating.get(vm),
    )


@router.put("/{vm}/labels", responses=problems(*WITH_BODY, *ASKS_A_HOST), dependencies=[HOST])
async def replace_labels(on: Services, who: Who, vm: VmInReach, body: LabelsReplace) -> LabelsView:
    """Replace all labels of a VM."""
    on.access.guard.may_label(who)
    known = await on.hosts.label(vm, body.labels)
    return LabelsView(uuid=known.uuid, labels=dict(known.labels))


@router.get("/{vm}/explain", responses=problems(*ASKS_A_HOST) | KEPT, dependencies=[READ, LIVE])
async def explain_vm(on: Services, vm: VmInReach) -> ExplanationView:
    """Explain which assignment the VM gets, and why."""
    host = await on.hosts.where(vm)
    return ExplanationView.of(vm, host, await on.assignments.explain(vm, host))


@router.get("/{vm}/effective", responses=problems(*ASKS_A_HOST), dependencies=[READ])
async def get_effective(on: Services, vm: VmInReach) -> EffectiveView:
    """The current values of all tunables, including those of the host."""
    host, facts, readings = await on.queries.effective(vm)
    return EffectiveView(
        uuid=vm,
        name=facts.name,
        host=host,
        readings=readings_of(readings, on.tunables, on.tunables),
    )


@router.post("/{vm}/plan", responses=problems(*WITH_BODY, *ASKS_A_HOST), dependencies=[READ])
async def plan_vm(
    on: Services, who: Who, vm: VmInReach, body: PlanCreate | None = None
) -> PlanView:
    """Plan an application or migration: changes, their routes, and findings. Changes nothing. With
    an intent: the settings that are chosen for it and why, and the nearest that can be kept."""
    wanted = body or PlanCreate()
    if wanted.destination is not None:
        on.access.guard.host(who, wanted.destination)
    if wanted.intent is not None:
        found = await on.migrations.intents.plan(
            wanted.intent,
            vm,
            wanted.destination,
            wanted.profile,
            wanted.revision,
            wanted.values,
            wanted.steps,
            wanted.without_profile,
        )
        return PlanView.of(found.planned, IntentPlanView.planned(found))
    planned = await on.plans.plan(
        vm,
        wanted.profile,
        wanted.revision,
        wanted.destination,
        values=wanted.values,
        steps=wanted.steps,
        without_profile=wanted.without_profile,
    )
    return PlanView.of(planned)


@router.post(
    "/{vm}/forecasts",
    responses=problems(*WITH_BODY, *ASKS_A_HOST),
    dependencies=[READ, KEYED],
)
async def forecast_vm(
    on: Services, who: Who, vm: VmInReach, body: MigrationForecastCreate
) -> MigrationForecastView:
    """Forecast a migration: how long it takes, how long the guest stands still, whether it ends by
    itself. Measures for some 20 s how the guest dirties its memory, unless that was done within
    the last 10 minutes. Changes nothing."""
    on.access.guard.host(who, body.destination)
    found = await on.forecasts.forecast(
        vm,
        body.destination,
        body.profiles,
        body.values,
        throughput_bytes_per_s=body.throughput_bytes_per_s,
        fresh=body.fresh,
    )
    return MigrationForecastView.of(found, datetime.now(UTC))


async def _begun(on: Container, id: str) -> ApplicationView:
    return ApplicationView.of(await on.queries.application(UUID(id)), on.tunables)


@router.post(
    "/{vm}/applications",
    status_code=201,
    responses=problems(*WITH_BODY, *ASKS_A_HOST) | with_headers(201, LOCATION),
    dependencies=[APPLY, keyed(Begun.APPLICATION, _begun, "/applications/{id}")],
)
async def apply_to_vm(
    on: Services,
    who: Who,
    vm: VmInReach,
    response: Response,
    body: ApplicationCreate | None = None,
) -> ApplicationView:
    """Apply a profile and read all values back. Check `state`: an application that failed
    half-way is recorded as failed, with all values restored."""
    wanted = body or ApplicationCreate()
    record = await on.applications.apply(
        vm,
        wanted.profile,
        wanted.revision,
        wanted.best_effort,
        wanted.boot_only,
        may_raise_limits=not who.rights.reach.labels,
    )
    response.headers["Location"] = f"{PREFIX}/applications/{record.id}"
    return ApplicationView.of(record, on.tunables)


@router.post("/{vm}/verify", responses=problems(*ASKS_A_HOST), dependencies=[READ])
async def verify_vm(on: Services, vm: VmInReach) -> VerificationView:
    """Compare the VM's current values to its active application, or else its assignment. The
    result is the VM's tuning state in lists until the next check."""
    return VerificationView.of(await on.applications.verify(vm), on.tunables)

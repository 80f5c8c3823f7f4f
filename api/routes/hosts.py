"""Hosts."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import Query, Response

from vmtune.api.auth.reach import HostInReach
from vmtune.api.auth.security import HOST, READ, Who
from vmtune.api.http.idempotency import keyed
from vmtune.api.http.kept_answers import LIVE, STORED
from vmtune.api.responses import ASKS_A_HOST, KEPT, LOCATION, WITH_BODY, problems, with_headers
from vmtune.api.routes.common import PREFIX, After, Limit, Services
from vmtune.api.routes.router import Router
from vmtune.api.routes.vms import Search, list_page
from vmtune.api.schemas.common import ProblemItem, problems_of
from vmtune.api.schemas.drift import DriftScanView
from vmtune.api.schemas.hosts import (
    HostChange,
    HostCreate,
    HostDetail,
    HostFactsView,
    HostMaintenance,
    HostOwner,
    HostPage,
    HostView,
)
from vmtune.api.schemas.plans import FindingView
from vmtune.api.schemas.vms import VmPage
from vmtune.api.wiring.deps import Container
from vmtune.errors import Conflict, VmtuneError
from vmtune.model.host.contact import HostState
from vmtune.model.host.facts import VmState
from vmtune.model.host.inventory import Host, HostSort, VmSort
from vmtune.model.idempotency import Begun
from vmtune.model.plan.tuning_state import TuningState
from vmtune.services.inventory_lists import VmFilter, parse_labels

router = Router(prefix="/hosts", tags=["hosts"])


@router.get("", responses=problems() | KEPT, dependencies=[READ, STORED])
async def list_hosts(
    on: Services,
    who: Who,
    search: Annotated[
        str, Query(max_length=200, description="A part of the name or the URI, whatever the case.")
    ] = "",
    state: Annotated[HostState | None, Query(description="As of the last contact.")] = None,
    maintenance: Annotated[
        bool | None, Query(description="Only those in maintenance, or not.")
    ] = None,
    sort: HostSort = HostSort.NAME,
    limit: Limit = 50,
    after: After = None,
) -> HostPage:
    """Hosts, sorted by name unless `sort` says otherwise, each as of the last contact: no host is
    asked."""
    page, vms = await on.inventory.hosts(
        after, limit, who.rights.reach, search, state, maintenance, sort
    )
    return HostPage(
        items=[
            HostView.of(host, on.hosts.contacts.of(host.name), vms[host.name])
            for host in page.items
        ],
        next=page.next,
    )


async def _view(on: Container, host: Host) -> HostView:
    vms = await on.inventory.vm_counts([host.name])
    return HostView.of(host, on.hosts.contacts.of(host.name), vms[host.name])


async def _begun(on: Container, name: str) -> HostView:
    return await _view(on, await on.hosts.get(name))


@router.post(
    "",
    status_code=201,
    responses=problems(*WITH_BODY, 409, 424) | with_headers(201, LOCATION),
    dependencies=[HOST, keyed(Begun.HOST, _begun, "/hosts/{id}")],
)
async def add_host(on: Services, who: Who, body: HostCreate, response: Response) -> HostView:
    """Add a host, after a test connection."""
    on.access.guard.unrestricted(who, "this applies to new hosts")
    network = {
        "migrate_uri": body.migrate_uri,
        "listen_address": body.listen_address,
        "disks_uri": body.disks_uri,
    }
    host = await on.hosts.add(body.name, body.uri, body.peer_uri, body.migration_address, network)
    response.headers["Location"] = f"{PREFIX}/hosts/{quote(host.name, safe='')}"
    return await _view(on, host)


@router.get("/{name}", responses=problems(404), dependencies=[READ])
async def get_host(on: Services, who: Who, name: HostInReach) -> HostDetail:
    """A host and its current state, or why it does not answer."""
    host = await on.hosts.get(name)
    scan = None if who.rights.reach.labels else DriftScanView.of(await on.drift.get(name))
    facts: HostFactsView | None = None
    findings: list[FindingView] = []
    problems: list[ProblemItem] = []
    try:
        facts = HostFactsView.of(await on.hosts.facts(name))
        found = (await on.doctor.diagnose(name)).needs_action
        on.hosts.contacts.examined(name, len(found))
        findings = [FindingView.from_record(finding) for finding in found]
    except VmtuneError as error:
        problems = problems_of(error.problems)
    shown = (await _view(on, host)).model_dump()
    return HostDetail(**shown, drift=scan, facts=facts, problems=problems, findings=findings)


@router.patch("/{name}", responses=problems(*WITH_BODY, 404), dependencies=[HOST])
async def change_host(on: Services, who: Who, name: HostInReach, body: HostChange) -> HostView:
    """Change the addresses of a host's migration network."""
    on.access.guard.unrestricted(who, "the host may have VMs of others")
    network = body.model_dump(exclude_none=True)
    return await _view(on, await on.hosts.change_network(name, network))


@router.put("/{name}/maintenance", responses=problems(*WITH_BODY, 404), dependencies=[HOST])
async def set_host_maintenance(
    on: Services, who: Who, name: HostInReach, body: HostMaintenance
) -> HostView:
    """Begin or end a host's maintenance. Meanwhile it gets no VMs: migrations to it need an
    override, and evacuations pass it over. VMs that it has stay; evacuate it to move them."""
    on.access.guard.unrestricted(who, "the host may have VMs of others")
    return await _view(on, await on.hosts.set_maintenance(name, body.on))


@router.delete("/{name}", status_code=204, responses=problems(404, 409), dependencies=[HOST])
async def remove_host(on: Services, who: Who, name: HostInReach) -> None:
    """Remove a host from vmtune. The host itself, its VMs and their history stay unchanged."""
    on.access.guard.unrestricted(who, "the host may have VMs of others")
    await on.hosts.remove(name)


@router.put("/{name}/owner", responses=problems(*WITH_BODY, 404, 409), dependencies=[HOST])
async def set_host_owner(on: Services, who: Who, name: HostInReach, body: HostOwner) -> HostView:
    """Move a host to another service. It must have no running operations."""
    on.access.guard.unrestricted(who, "the host may have VMs of others")
    if on.cluster is None:
        raise Conflict(
            "a single service manages all hosts",
            field="service",
            code="not_shared",
            remedy="use PostgreSQL to run several services",
        )
    return await _view(on, await on.cluster.give(name, body.service))


@router.get("/{name}/vms", responses=problems(*ASKS_A_HOST) | KEPT, dependencies=[READ, LIVE])
async def list_host_vms(
    on: Services,
    who: Who,
    name: HostInReach,
    search: Search = "",
    state: VmState | None = None,
    tuning_state: TuningState | None = None,
    label: Annotated[list[str], Query(description="key=value; repeatable.")] = [],  # noqa: B006 - FastAPI copies it
    sort: VmSort = VmSort.NAME,
    limit: Limit = 50,
    after: After = None,
) -> VmPage:
    """The current VMs of a host; as last seen if it does not answer."""
    wanted = VmFilter(name, None, state, parse_labels(label), tuning_state, search)
    return await list_page(on, who, wanted, limit, after, sort)

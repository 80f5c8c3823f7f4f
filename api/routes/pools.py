"""Coroutine pools of running QEMUs, and the limits of the host that they run into."""

from __future__ import annotations

from vmtune.api.auth.reach import HostInReach, VmInReach, WholeHostInReach
from vmtune.api.auth.security import HOST, READ, Who
from vmtune.api.responses import ASKS_A_HOST, WITH_BODY, problems
from vmtune.api.routes.common import Services
from vmtune.api.routes.router import Router
from vmtune.api.schemas.pools import LimitList, LimitsSet, LimitView, PoolList, PoolView
from vmtune.services.hosts.limits import LimitState

router = Router()
_SHARED = "the limits of a machine apply to all its VMs"


@router.get("/vms/{vm}/pools", tags=["vms"], responses=problems(*ASKS_A_HOST), dependencies=[READ])
async def get_pools(on: Services, vm: VmInReach) -> PoolView:
    """The coroutine pool of a VM and vm.max_map_count: worst case and current use."""
    return PoolView.of(await on.pools.of_vm(vm))


@router.get(
    "/hosts/{name}/pools", tags=["hosts"], responses=problems(*ASKS_A_HOST), dependencies=[READ]
)
async def list_pools(on: Services, who: Who, name: HostInReach) -> PoolList:
    """The pools of a host's running VMs, closest to the limit first."""
    reports = await on.pools.of_host(name)
    shown = []
    for report in reports:
        labels = await on.queries.labels(report.vm.uuid)
        if who.rights.reach.has_vm(name, labels):
            shown.append(PoolView.of(report))
    return PoolList(items=shown)


@router.get(
    "/hosts/{name}/limits", tags=["hosts"], responses=problems(*ASKS_A_HOST), dependencies=[READ]
)
async def get_limits(on: Services, name: WholeHostInReach) -> LimitList:
    """The limits of this machine that vmtune can raise, with requests and original values."""
    return _listed(await on.limits.state(name))


@router.put(
    "/hosts/{name}/limits",
    tags=["hosts"],
    responses=problems(*WITH_BODY, *ASKS_A_HOST),
    dependencies=[HOST],
)
async def set_limits(on: Services, who: Who, name: HostInReach, body: LimitsSet) -> LimitList:
    """Raise limits, now and after a reboot, until they are restored. Needs the setting
    `host_changes`. Higher limits stay unchanged."""
    on.access.guard.unrestricted(who, _SHARED)
    return _listed(await on.limits.set_by_hand(name, body.values))


@router.delete(
    "/hosts/{name}/limits",
    tags=["hosts"],
    responses=problems(*ASKS_A_HOST),
    dependencies=[HOST],
)
async def restore_limits(on: Services, who: Who, name: HostInReach) -> LimitList:
    """Restore all limits, but not below what running VMs need: those are restored when the VMs
    have stopped."""
    on.access.guard.unrestricted(who, _SHARED)
    return _listed(await on.limits.restore(name))


def _listed(states: list[LimitState]) -> LimitList:
    return LimitList(items=[LimitView.from_record(state) for state in states])

"""Path parameters that resolve only to what the caller may reach."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path

from vmtune.api.auth.security import Who
from vmtune.api.routes.common import Name, Services
from vmtune.model.migration.record import Migration
from vmtune.model.plan.outcome import Application
from vmtune.model.profile import Assignment


async def _vm(on: Services, who: Who, vm: UUID) -> UUID:
    await on.access.guard.vm(who, vm)
    return vm


async def _host(on: Services, who: Who, name: Name) -> str:
    on.access.guard.host(who, name)
    return name


async def _whole_host(on: Services, who: Who, name: Name) -> str:
    on.access.guard.whole_host(who, name)
    return name


async def _application(on: Services, who: Who, application: UUID) -> Application:
    record = await on.queries.application(application)
    await on.access.guard.application(who, record)
    return record


async def _migration(on: Services, who: Who, migration: UUID) -> Migration:
    record = await on.queries.migration(migration)
    await on.access.guard.migration(who, record)
    return record


async def _assignment(
    on: Services, who: Who, number: Annotated[int, Path(ge=1, le=2**63 - 1)]
) -> Assignment:
    found = await on.queries.assignment(number)
    await on.access.guard.assignment(who, found)
    return found


async def _everywhere(on: Services, who: Who) -> None:
    on.access.guard.unrestricted(who, "this applies to all hosts and VMs")


EVERYWHERE = Depends(_everywhere)
"""For what concerns all hosts and VMs: profiles, which any VM may have, and the audit log."""
VmInReach = Annotated[UUID, Depends(_vm)]
HostInReach = Annotated[str, Depends(_host)]
WholeHostInReach = Annotated[str, Depends(_whole_host)]
ApplicationInReach = Annotated[Application, Depends(_application)]
MigrationInReach = Annotated[Migration, Depends(_migration)]
AssignmentInReach = Annotated[Assignment, Depends(_assignment)]

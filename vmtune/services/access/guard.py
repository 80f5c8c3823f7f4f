"""Denies callers that are restricted to some hosts and VMs access to all others.

What is out of reach is answered as if it did not exist, in the same words: a caller who may not see
a VM cannot learn that it exists. The audit log records the refusal.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from uuid import UUID

from vmtune.errors import Forbidden, HostUnreachable, NotFound
from vmtune.model.access.scopes import Identity, Reach
from vmtune.model.host.inventory import Event, EventTopic
from vmtune.model.migration.record import Migration
from vmtune.model.plan.outcome import Application
from vmtune.model.profile import Assignment, Target, parse_selector
from vmtune.services.events import Progress
from vmtune.services.hosts.hosts import HostService
from vmtune.storage import Store


class OutOfReach(NotFound):
    """It exists, but is out of the caller's reach."""


def hidden(like: NotFound) -> OutOfReach:
    """The error that *like* would be, had the thing not been there."""
    return OutOfReach(like.message, problems=like.problems)


class AccessGuard:
    """Checks whether a resource is within a caller's reach."""

    def __init__(self, store: Store, hosts: HostService) -> None:
        self._store = store
        self._hosts = hosts

    def host(self, who: Identity, name: str) -> None:
        """:raise NotFound: the host is out of reach."""
        if not who.rights.reach.has_host(name):
            raise hidden(no_host(name))

    def whole_host(self, who: Identity, name: str) -> None:
        """For what concerns all VMs of a host.

        :raise NotFound: the host is out of reach.
        :raise Forbidden: *who* is restricted to VMs by their labels.
        """
        self.host(who, name)
        self.whole_hosts(who)

    def whole_hosts(self, who: Identity) -> None:
        """For what concerns all VMs of hosts.

        :raise Forbidden: *who* is restricted to VMs by their labels.
        """
        if who.rights.reach.labels:
            raise Forbidden(
                f"{who} is restricted to VMs by their labels, and this concerns all of a host",
                field="Authorization",
                code="out_of_reach",
                remedy="use a token that is not restricted by labels",
            )

    async def vm(self, who: Identity, vm: UUID) -> None:
        """Look where the VM is now, and at its labels.

        :raise NotFound: there is no such VM, or it is out of reach.
        :raise HostUnreachable: hosts within reach do not answer, and no other has it.
        """
        reach = who.rights.reach
        if reach.is_everything:
            return
        try:
            host = await self._hosts.where(vm)
        except HostUnreachable as error:
            if reach.hosts is None:
                raise
            raise hidden(no_vm(vm)) from error  # which hosts are silent is not theirs to know
        if not reach.has_vm(host, await asyncio.to_thread(self._labels, vm)):
            raise hidden(no_vm(vm))

    async def application(self, who: Identity, record: Application) -> None:
        """:raise NotFound: the application was on a VM or host out of reach."""
        if not await self._sees(who.rights.reach, (record.host,), record.vm):
            raise hidden(NotFound(f"there is no application {record.id}", field="application"))

    async def migration(self, who: Identity, record: Migration) -> None:
        """The history of both its hosts.

        :raise NotFound: the migration was of a VM, and between hosts, out of reach.
        """
        if not await self._sees(who.rights.reach, (record.source, record.destination), record.vm):
            raise hidden(NotFound(f"there is no migration {record.id}", field="migration"))

    async def assignment(self, who: Identity, found: Assignment) -> None:
        """:raise NotFound: the assignment is for what is out of reach."""
        if not await self.sees_assignment(who, found):
            raise hidden(
                NotFound(
                    f"there is no assignment number {found.id}",
                    field="assignment",
                    remedy="vmtune assign list shows them",
                )
            )

    async def sees_assignment(self, who: Identity, found: Assignment) -> bool:
        """Whether all VMs that an assignment can be for are within reach."""
        reach = who.rights.reach
        if reach.is_everything:
            return True
        return await self._covers(reach, found.target, found.key)

    async def may_assign(self, who: Identity, target: Target, key: str) -> None:
        """:raise Forbidden: the assignment would be for VMs out of reach too."""
        reach = who.rights.reach
        if reach.is_everything:
            return
        if target is Target.VM:
            with contextlib.suppress(ValueError):  # which is refused elsewhere, with the reason
                await self.vm(who, UUID(key))
            return
        if not await self._covers(reach, target, key):
            raise Forbidden(
                f"{who} may not assign a profile to VMs out of its reach",
                field="key",
                code="out_of_reach",
                remedy="assign it to a VM or host of its own, or use a token without restriction",
            )

    async def _covers(self, reach: Reach, target: Target, key: str) -> bool:
        match target:
            case Target.VM:
                known = await asyncio.to_thread(self._known_host, UUID(key))
                return known is not None and await self._sees(reach, (known,), UUID(key))
            case Target.SELECTOR:
                return reach.hosts is None and reach.labels <= set(parse_selector(key).items())
            case Target.HOST:
                return not reach.labels and reach.has_host(key)
        return False

    def may_label(self, who: Identity) -> None:
        """:raise Forbidden: labels decide what *who* may reach, so *who* may not change them."""
        if who.rights.reach.labels:
            raise Forbidden(
                f"{who} is restricted to VMs by their labels, and may not change these",
                field="labels",
                code="out_of_reach",
                remedy="use a token that is not restricted by labels",
            )

    def unrestricted(self, who: Identity, what: str) -> None:
        """:raise Forbidden: *who* is restricted to some hosts or VMs, and *what* is not."""
        if not who.rights.reach.is_everything:
            raise Forbidden(
                f"{who} is restricted to some hosts or VMs, and {what}",
                field="Authorization",
                code="out_of_reach",
                remedy="use a token without restriction",
            )

    async def sees_event(self, who: Identity, message: Event | Progress) -> bool:
        """Whether an event concerns what is within reach; False if that is not known."""
        reach = who.rights.reach
        if reach.is_everything or message.topic is EventTopic.PROFILE:
            return True
        if message.topic is EventTopic.HOST:
            return not reach.labels and reach.has_host(message.subject)
        if message.topic is EventTopic.EVACUATION:
            return not reach.labels and reach.has_host(str(message.data.get("host")))
        vm = message.subject if message.topic is EventTopic.VM else message.data.get("vm")
        try:
            id = UUID(str(vm))
        except ValueError:
            return False
        hosts = _hosts_of(message.data)
        if not hosts:
            known = await asyncio.to_thread(self._known_host, id)
            hosts = (known,) if known is not None else ()
        return await self._sees(reach, hosts, id)

    async def _sees(self, reach: Reach, hosts: tuple[str, ...], vm: UUID) -> bool:
        if reach.is_everything:
            return True
        labels = await asyncio.to_thread(self._labels, vm) if reach.labels else {}
        return any(reach.has_vm(host, labels) for host in hosts)

    def _labels(self, vm: UUID) -> Mapping[str, str]:
        try:
            return self._store.vms.get(vm).labels
        except NotFound:
            return {}

    def _known_host(self, vm: UUID) -> str | None:
        try:
            return self._store.vms.get(vm).host
        except NotFound:
            return None


def _hosts_of(data: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(str(data[key]) for key in ("source", "destination") if key in data)


def no_host(name: str) -> NotFound:
    """The error of a host that is not there."""
    return NotFound(
        f"there is no host named {name[:70]}",
        field="host",
        remedy="vmtune host list shows them, vmtune host add adds one",
    )


def no_vm(vm: UUID) -> NotFound:
    """The error of a VM that no host has."""
    return NotFound(
        f"no VM {vm} on any host",
        field="vm",
        remedy="`vmtune vm list` shows the VMs of all hosts",
    )

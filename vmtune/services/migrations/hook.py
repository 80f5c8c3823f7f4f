"""Answers libvirt's hook: a VM is about to arrive; with which XML is its QEMU started? libvirt
waits for the answer and must not be called meanwhile: the request and the store have all that is
needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from vmtune.errors import InvalidInput, NotFound
from vmtune.hypervisor.protocol import ArrivingXml
from vmtune.model.host.inventory import EventTopic
from vmtune.model.migration.arriving import Arrival, split
from vmtune.model.migration.record import Trigger
from vmtune.model.plan.situation import Permissions
from vmtune.services.events import EventBus
from vmtune.services.tuning.profiles import UNTUNED, AssignmentService, DesiredValues
from vmtune.storage import Store


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the hook.
    :param xml: the VM's new XML; None for no change.
    """

    arrival: Arrival
    xml: str | None


class HookService:
    """Answers the hook, and publishes arrivals.

    :param xml: reads and edits the hook's XML.
    """

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        assignments: AssignmentService,
        permissions: Permissions,
        xml: ArrivingXml,
    ) -> None:
        self._xml = xml
        self._store = store
        self._bus = bus
        self._assignments = assignments
        self._permissions = permissions

    async def arriving(self, xml: bytes, destination: str = "") -> Answer:
        """A VM is about to arrive.

        :param destination: the host that asks, where it is known.

        The XML may hold passwords (of a display, say): only the VM's UUID and name are stored or
        logged.

        :raise InvalidInput: it is not the XML of a domain.
        :raise Conflict: two label selectors tie for the VM's profile.
        """
        text = _text(xml)
        vm, name = await asyncio.to_thread(self._xml.identify, text)
        host, migration = await asyncio.to_thread(self._known, vm)
        chosen = UNTUNED
        if migration is None:
            # As for a migration of vmtune's own: of where it comes from.
            chosen = await self._assignments.choose(vm, host, None)
        changed, arrival = await asyncio.to_thread(self._settle, text, vm, name, chosen, migration)
        self._bus.publish_soon(EventTopic.ARRIVAL, vm, _event_data(arrival, host, destination))
        return Answer(arrival, changed)

    def _known(self, vm: UUID) -> tuple[str, UUID | None]:
        """The host where the VM was seen last, and vmtune's migration of it."""
        try:
            host = self._store.vms.get(vm).host
        except NotFound:
            host = ""
        for record in self._store.migrations.list(vm=vm, limit=1).items:
            if record.trigger is Trigger.VMTUNE and not record.state.ended:
                return host, record.id
        return host, None

    def _settle(
        self, xml: str, vm: UUID, name: str, chosen: DesiredValues, migration: UUID | None
    ) -> tuple[str | None, Arrival]:
        given, withheld = split(chosen.values, self._permissions)
        changed = self._xml.edit(xml, given) if given else None
        arrival = Arrival(vm, name, chosen.profile, chosen.revision, given, withheld, migration)
        return changed, arrival


def _text(xml: bytes) -> str:
    try:
        return xml.decode()
    except UnicodeDecodeError:
        raise InvalidInput(
            "the XML is not in UTF-8",
            field="xml",
            code="xml_refused",
            remedy="send the XML that libvirt gives to its hooks",
        ) from None


def _event_data(arrival: Arrival, source: str, destination: str) -> Mapping[str, Any]:  # any: JSON
    """What the event says; where the VM comes from, too, if it was ever seen, and where to, if
    that is known."""
    data: dict[str, Any] = {
        "vm": str(arrival.vm),
        "name": arrival.vm_name,
        "profile": arrival.profile,
        "revision": arrival.revision,
        "given": dict(arrival.given),
        "withheld": dict(arrival.withheld),
    }
    if source:
        data["source"] = source
    if destination:
        data["destination"] = destination
    if arrival.migration is not None:
        data["migration"] = str(arrival.migration)
    return data

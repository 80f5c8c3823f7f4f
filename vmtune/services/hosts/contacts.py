"""Which hosts answer, as calls to them show."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from vmtune.errors import Problem, VmtuneError
from vmtune.model.host.contact import NEVER, Contact, HostState
from vmtune.model.host.facts import HostFacts
from vmtune.model.host.inventory import EventTopic
from vmtune.services.events import EventBus


class Contacts:
    """The last contact with each host, by name, since the service started."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._known: dict[str, Contact] = {}

    def of(self, host: str) -> Contact:
        """The last contact with a host."""
        return self._known.get(host, NEVER)

    def all(self) -> Mapping[str, Contact]:
        """Of every host that was asked."""
        return self._known

    async def answered(self, host: str, facts: HostFacts | None = None) -> None:
        """A host has answered."""
        await self._note(host, self.of(host).answered(datetime.now(UTC), facts))

    async def silent(self, host: str, problem: Problem) -> None:
        """A host has not answered."""
        await self._note(host, self.of(host).silent(datetime.now(UTC), problem))

    def examined(self, host: str, findings: int) -> None:
        """Host diagnostics found that many problems."""
        before = self.of(host).findings
        self._known[host] = replace(self.of(host), findings=findings)
        if findings != before and (findings or before):
            data = {"change": "findings", "findings": findings}
            self._bus.publish_soon(EventTopic.HOST, host, data)

    def forget(self, host: str) -> None:
        """A host was removed, or has another address."""
        self._known.pop(host, None)

    async def _note(self, host: str, contact: Contact) -> None:
        before, self._known[host] = self.of(host).state, contact
        if before is not contact.state and HostState.UNREACHABLE in (before, contact.state):
            change = {"change": "state", "state": contact.state.value}
            with suppress(VmtuneError):  # a list is readable while the database takes no writes
                await self._bus.publish(EventTopic.HOST, host, change)

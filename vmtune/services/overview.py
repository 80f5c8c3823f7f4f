"""The fleet at a glance, what is done in it, and one search over all of it: from the database and
what was seen of hosts last. No host is asked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from vmtune.errors import InvalidInput
from vmtune.model.access.audit import Entry
from vmtune.model.access.scopes import EVERYTHING, Identity, Reach, Scope
from vmtune.model.host.contact import Contact
from vmtune.model.overview import (
    Activity,
    Attention,
    Found,
    Standing,
    attention,
    in_order,
)
from vmtune.services.hosts.contacts import Contacts
from vmtune.storage import Store

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Glance:
    """The fleet at a moment.

    :param contacts: the last contact with each host that was asked.
    """

    at: datetime
    standing: Standing
    contacts: Mapping[str, Contact]
    attention: Sequence[Attention]


class OverviewService:
    """Reads all of it."""

    def __init__(self, store: Store, contacts: Contacts) -> None:
        self._store = store
        self._contacts = contacts

    async def glance(self, reach: Reach = EVERYTHING) -> Glance:
        """The fleet now, as far as *reach* goes."""
        now = datetime.now(UTC)
        standing = await asyncio.to_thread(self._store.overview.standing, now, _SHOWN, reach)
        contacts = self._contacts.all()
        return Glance(now, standing, contacts, attention(standing, contacts, now, _SHOWN))

    async def activities(self, who: Identity, limit: int) -> list[Activity]:
        """What runs, and what ended last. Who began it is told to those who may read the audit
        log."""
        reach = who.rights.reach
        told = reach.is_everything and who.rights.allow(Scope.ADMIN)

        def read() -> list[Activity]:
            found = in_order(self._store.overview.activities(limit, reach), limit)
            actors = self._store.overview.actors([each.id for each in found]) if told else {}
            return [replace(each, actor=actors.get(each.id, "")) for each in found]

        return await asyncio.to_thread(read)

    async def vms_of(self, entries: Sequence[Entry]) -> Mapping[int, tuple[UUID, str]]:
        """The UUID and name of the VM that entries of the audit log are about, by their number."""
        about = {entry.number: subject for entry in entries if (subject := _about(entry))}
        if not about:
            return {}
        found = await asyncio.to_thread(self._store.overview.vms_of, set(about.values()))
        return {number: found[id] for number, (_, id) in about.items() if id in found}

    async def find(self, search: str, limit: int, reach: Reach = EVERYTHING) -> list[Found]:
        """VMs, hosts, profiles, migrations, campaigns, studies and runs, up to *limit* of each.

        :raise InvalidInput: nothing is searched for.
        """
        text = search.strip()
        if not text:
            raise InvalidInput("nothing is searched for", field="q", remedy="give a part of a name")
        return await asyncio.to_thread(self._store.overview.find, text, limit, reach)


_ABOUT = re.compile(
    r"\b(vm|labels|migration|application) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)


def _about(entry: Entry) -> tuple[str, UUID] | None:
    """What an entry is about, and its id, where that is a VM or has one."""
    match = _ABOUT.search(entry.subject)
    if match is None:
        return None
    return "vm" if match[1] == "labels" else match[1], UUID(match[2])

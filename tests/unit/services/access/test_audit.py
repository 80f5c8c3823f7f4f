"""How many entries refusals may have."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from tests.support.stores.databases import empty_database
from vmtune.model.access.audit import Act, Outcome
from vmtune.model.access.scopes import NOBODY, Identity, Kind
from vmtune.services.access.audit import AuditService
from vmtune.storage import Store
from vmtune.storage.repositories.audit_log import AuditFilter


@pytest.fixture
def store(tmp_path: Path) -> Store:
    url = empty_database(tmp_path / "s.db")
    return Store.open(url)


async def refused(audit: AuditService, address: str, who: Identity = NOBODY) -> None:
    await audit.note(Act(who, address, "GET /x"), Outcome.REFUSED, "", 401, ["token_missing"])


async def test_addresses_of_ipv6_do_not_multiply_entries(store: Store) -> None:
    now = 0.0
    with store:
        audit = AuditService(store, lambda: now)
        one_network = int(ipaddress.ip_address("2001:db8::1"))
        for number in range(100):
            await refused(audit, str(ipaddress.ip_address(one_network + number)))
        assert len((await audit.list(AuditFilter(), None, 200)).items) == 30
        now = 61.0
        await audit.note_suppressed()
        (newest, *_) = (await audit.list(AuditFilter(), None, 1)).items
        assert newest.subject == "70 more attempts within a minute"


async def test_strangers_of_many_networks_have_a_bound_together(store: Store) -> None:
    with store:
        audit = AuditService(store, lambda: 0.0)
        for number in range(400):
            await refused(audit, f"2001:db8:{number:x}::1")
        found = [e async for batch in audit.all(AuditFilter()) for e in batch]
        assert len(found) == 230  # of 200 networks one each, and 30 of all others
        ci = Identity(Kind.TOKEN, "ci", "ci")  # who is known has entries still
        await refused(audit, "192.0.2.1", ci)
        assert (await audit.list(AuditFilter(), None, 1)).items[0].actor.id == "ci"


async def test_codes_are_kept_once_and_few(store: Store) -> None:
    with store:
        audit = AuditService(store)
        codes = ["a"] * 1000 + [f"c{n}" for n in range(1000)]
        await audit.note(Act(NOBODY, "192.0.2.1", "x"), Outcome.REFUSED, "", 422, codes)
        (entry,) = (await audit.list(AuditFilter(), None, 9)).items
        assert entry.codes[:2] == ("a", "c0")
        assert len(entry.codes) == 20

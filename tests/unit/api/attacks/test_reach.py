"""What a token that is restricted to VMs by a label may not see or raise."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.support.simulated.fakes import VM
from tests.unit.api.attacks.conftest import Victim
from vmtune.services.tuning import work
from vmtune.storage import Store


@pytest.fixture
def mine(victim: Victim) -> Iterator[str]:
    """A token for VMs of the tier web, of which host a has one."""
    victim.forgive()
    with Store.open(victim.api.container.settings.database_url) as store:
        store.vms.remember_all("a", {VM: "guest"}, datetime.now(UTC))
        store.vms.set_labels(VM, {"tier": "web"})
    body = {"name": "of-web", "scopes": ["admin"], "selector": {"tier": "web"}}
    made = victim.unix.ask("POST", "/tokens", body).document
    yield made["token"]
    victim.unix.ask("DELETE", f"/tokens/{made['id']}")


@pytest.mark.parametrize("path", ["/hosts/a/findings", "/hosts/a/limits"])
def test_what_names_other_vms_of_a_host_is_refused(victim: Victim, mine: str, path: str) -> None:
    reply = victim.tcp.ask("GET", path, token=mine)
    assert (reply.status, reply.codes) == (403, ["out_of_reach"])
    assert victim.tcp.ask("GET", f"/vms/{VM}", token=mine).status == 200


def test_a_tie_does_not_name_anothers_selector(victim: Victim, mine: str) -> None:
    for name in ("theirs", "ours"):
        victim.unix.ask("POST", "/profiles", {"name": name, "values": {}})
    theirs = {"target": "selector", "key": "customer=secret", "profile": "theirs"}
    assert victim.unix.ask("POST", "/assignments", theirs).status == 201
    ours = {"target": "selector", "key": "tier=web", "profile": "ours"}
    reply = victim.tcp.ask("POST", "/assignments", ours, mine)
    assert (reply.status, reply.codes) == (409, ["tied_assignments"])
    assert b"secret" not in reply.content
    assert b"theirs" not in reply.content
    told = victim.unix.ask("POST", "/assignments", ours)  # who may see it is told
    assert b"customer=secret" in told.content


def test_a_profile_that_raises_the_hosts_limits_is_refused(
    victim: Victim, mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim.unix.ask("POST", "/profiles", {"name": "raises", "values": {"multifd": True}})
    monkeypatch.setattr(work, "limits_wanted", lambda _plan: {"vm_max_map_count": 262144})
    body = {"profile": "raises"}
    reply = victim.tcp.ask("POST", f"/vms/{VM}/applications", body, mine)
    assert (reply.status, reply.codes) == (403, ["out_of_reach"])
    assert b"vm_max_map_count" in reply.content
    assert victim.unix.ask("GET", f"/applications?vm={VM}").document["items"] == []

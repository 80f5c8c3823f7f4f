"""Ansible against the service and two real libvirt hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.hosts.ansible import Ansible, changed, task, three, why_no_ansible
from tests.support.hosts.live import Live, live, why_no_lab
from tests.support.served.browser import free_port

WHY_NOT = why_no_lab() or why_no_ansible()
pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never"),
]


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("live"), number=57, port=free_port()) as made:
        yield made


@pytest.fixture(scope="module")
def ansible(it: Live, tmp_path_factory: pytest.TempPathFactory) -> Ansible:
    """By TCP, with a token."""
    token = it.client.post("/tokens", {"name": "ansible", "scopes": ["admin"]})["token"]
    reached = {"url": f"http://127.0.0.1:{it.service.port}", "token": token}
    return Ansible(tmp_path_factory.mktemp("ansible"), reached)


def test_hosts_are_added_and_removed(it: Live, ansible: Ansible) -> None:
    b = it.host("b")
    described: dict[str, Any] = {"name": "b", "uri": b.uri, "peer_uri": b.peer_uri}
    found = ansible.tasks(
        *three("host", name="b", state="absent"),
        *three("host", **described),
        task("host", name="c", uri="qemu+tcp://127.0.0.1:1/system"),
    )
    assert changed(found[:-1]) == [True, True, False] * 2
    assert found[4]["host"]["state"] in ("up", "unknown")
    assert found[-1]["failed"]
    assert "uri" in found[-1]["msg"]


def test_a_vm_is_tuned_moved_and_its_host_emptied(it: Live, ansible: Ansible) -> None:
    with it.vm() as vm:
        found = ansible.tasks(
            *three("profile", name="moves", values={"multifd": True, "downtime_limit_ms": "450ms"}),
            *three("labels", vm=vm.name, labels={"tier": "web"}),
            *three("assignment", labels={"tier": "web"}, profile="moves"),
            *three("apply", vm=vm.name),
            *three("migrate", vm=vm.name, destination="b"),
            *three("host", name="b", maintenance=True),
            task("migrate", vm=vm.name, destination="b"),
            *three("evacuate", host="b"),
            task("host", name="b", maintenance=False),
            task("facts"),
        )
        assert changed(found) == [True, True, False] * 6 + [False] + [
            True,
            True,
            False,
            True,
            False,
        ]
        moved = found[13]["migration"]
        assert (moved["state"], moved["profile"]) == ("completed", "moves")
        assert {o["tunable"]: o["status"] for o in moved["outcomes"]} == {
            "multifd": "effective",
            "downtime_limit_ms": "effective",
        }
        assert [each["state"] for each in found[20]["vms"]] == ["moved"]
        assert it.states(vm) == {"a": "running"}
        (known,) = found[-1]["ansible_facts"]["vmtune"]["vms"]
        assert (known["name"], known["host"], known["labels"]) == (vm.name, "a", {"tier": "web"})
        listed = ansible.inventory()
        assert (
            listed["vmtune_label_tier_web"]["hosts"] == listed["vmtune_on_a"]["hosts"] == [vm.name]
        )


def test_a_token_that_may_not_is_refused(it: Live, ansible: Ansible) -> None:
    token = it.client.post("/tokens", {"name": "reads", "scopes": ["read"]})["token"]
    url = ansible.reached["url"]
    found = ansible.tasks(
        task("profile", name="x", values={"multifd": True}, token=token, url=url),
        task("facts", token=token, url=url),
        task("facts", token="vmt_nobody", url=url),
    )
    assert [bool(result.get("failed")) for result in found] == [True, False, True]
    assert (found[0]["status"], found[2]["status"]) == (403, 401)
    assert it.client.get("/profiles")["items"] == [
        p for p in it.client.get("/profiles")["items"] if p["name"] != "x"
    ]

"""The collection's modules and inventory, run by Ansible against the real application over fake
QEMUs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.hosts.ansible import Ansible, changed, task, three, why_no_ansible
from tests.support.served.api import Api
from tests.support.served.served_api import served_api
from tests.support.simulated.fakes import VM
from vmtune import __version__

WHY_NOT = why_no_ansible()
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never"),
]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with capture_logs(), served_api(tmp_path, tmp_path / "s.sock") as made:
        yield made


@pytest.fixture
def ansible(api: Api, tmp_path: Path) -> Ansible:
    folder = tmp_path / "ansible"
    folder.mkdir()
    return Ansible(folder, {"socket": str(tmp_path / "s.sock")})


def _diff(result: dict[str, Any]) -> tuple[Any, Any]:
    diff = result["diff"]
    return tuple(json.loads(diff[side] or "null") for side in ("before", "after"))  # type: ignore[return-value]


def test_what_is_described_is_brought_about_once(ansible: Ansible) -> None:
    values = {"multifd": True, "downtime_limit_ms": "200ms"}
    steps = [{"when": {"after_s": 120}, "then": {"set": {"downtime_limit_ms": "500ms"}}}]
    found = ansible.tasks(
        *three("profile", name="db", values=values, steps=steps, description="for databases"),
        task("profile", name="db", values={"downtime_limit_ms": 300}),
        *three("labels", vm=str(VM), labels={"tier": "db", "zone": "a"}),
        task("labels", vm=str(VM), labels={"tier": "db"}, purge=True),
        *three("assignment", labels={"zone": "a", "tier": "db"}, profile="db"),
        *three("assignment", default=True, profile="db"),
        *three("apply", vm=str(VM)),
        *three("apply", vm=str(VM), state="reverted"),
        *three("assignment", default=True, state="absent"),
        *three("host", name="a", maintenance=True),
        task("host", name="a", maintenance=False),
    )
    once = [True, True, False]
    assert changed(found) == [
        *once, True, *once, True, *once, *once, *once, *once, *once, *once, True,
    ]  # fmt: skip
    checked, made, _, revised = found[:4]
    assert _diff(checked) == _diff(made)
    assert _diff(made)[0] is None
    assert made["profile"]["values"] == {"multifd": True, "downtime_limit_ms": 200}
    assert revised["profile"]["revision"] == 2
    assert _diff(revised)[1] == {
        "values": {"downtime_limit_ms": 300}, "steps": [], "description": "",
    }  # fmt: skip
    applied = found[15]
    assert [o["status"] for o in applied["outcomes"]] == ["effective"]
    assert _diff(applied) == (None, None)  # QEMU's own is 300 ms


def test_what_is_wrong_is_named_and_changes_nothing(ansible: Ansible) -> None:
    found = ansible.tasks(
        task("profile", check=True, name="x", values={"multifd_chanels": 4}),
        task("host", name="a", uri="qemu:///other"),
        task("host", name="nowhere"),
        task("labels", vm="nobody", labels={}),
        task("apply", vm=str(VM), profile="none"),
        task("assignment", vm=str(VM), profile="none"),
        task("facts", socket="/nowhere/s.sock"),
        task("facts", url="http://tune.example:8470", token="vmt_secret"),
        task("facts"),
    )
    *failed, facts = found
    assert all(result["failed"] for result in failed)
    words = [result["msg"] for result in failed]
    assert "values.multifd_chanels" in words[0]
    assert "multifd_channels" in words[0].split("remedy:")[1]
    assert [p["field"] for p in failed[0]["problems"]] == ["values.multifd_chanels"]
    assert "uri: 'a' has" in words[1]
    assert "state: absent" in words[1]
    assert "takes its URI" in words[2]
    assert "no VM named 'nobody'" in words[3]
    assert "none" in words[4]
    assert "none" in words[5]
    assert "/nowhere/s.sock" in words[6]
    assert "https://NAME:PORT" in words[7]
    known = facts["ansible_facts"]["vmtune"]
    assert known["service"]["version"] == __version__
    assert [host["name"] for host in known["hosts"]] == ["a", "b"]
    assert known["profiles"] == known["assignments"] == []


def test_a_play_that_builds_on_itself_can_be_checked(ansible: Ansible) -> None:
    found = ansible.tasks(
        task("profile", check=True, name="db", values={"multifd": True}),
        task("assignment", check=True, default=True, profile="db"),
        task("apply", check=True, vm=str(VM)),
        task("apply", check=True, vm=str(VM), profile="db"),
        task("facts"),
        warns=True,
    )
    assert changed(found) == [True, True, True, True, False]
    assert all("a task before this one" in "".join(result["warnings"]) for result in found[1:4])
    known = found[-1]["ansible_facts"]["vmtune"]
    assert known["profiles"] == known["assignments"] == []


def test_a_vm_migrates_once_and_a_host_is_emptied_once(ansible: Ansible, api: Api) -> None:
    found = ansible.tasks(
        *three("migrate", vm=str(VM), destination="b"),
        task("migrate", vm=str(VM), destination="nowhere"),
    )
    assert changed(found[:3]) == [True, True, False]
    assert found[1]["migration"]["state"] == "completed"
    assert _diff(found[1]) == ({"host": "a"}, {"host": "b"})
    assert found[3]["failed"]
    assert "nowhere" in found[3]["msg"]


def test_the_inventory_has_hosts_vms_and_labels(ansible: Ansible, api: Api) -> None:
    ansible.tasks(task("labels", vm=str(VM), labels={"tier": "db-1"}))
    listed = ansible.inventory(
        keyed_groups=[{"key": "vmtune_tuning_state", "prefix": "tuning"}],
        compose={"where": "vmtune_host"},
    )
    assert listed["vmtune_hosts"]["hosts"] == ["a", "b"]
    (name,) = listed["vmtune_label_tier_db_1"]["hosts"]
    assert name == "vm"
    assert listed["vmtune_on_a"]["hosts"] == [name]
    assert listed["vmtune_state_running"]["hosts"] == [name]
    # Where it arrives, it waits: it is not there yet.
    assert "vmtune_on_b" not in listed
    assert listed["tuning_untuned"]["hosts"] == [name]
    variables = listed["_meta"]["hostvars"][name]
    assert (variables["vmtune_uuid"], variables["where"]) == (str(VM), "a")
    assert "vmtune_label_tier_db_1" not in ansible.inventory(vms=False)

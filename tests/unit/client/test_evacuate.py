"""``vmtune evacuate`` and ``evacuation`` against the real application."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from tests.support.examples.api_documents import host, migration
from tests.support.served.api import Api
from tests.support.served.stub_service import Reply, StubService, refusal
from tests.support.simulated.fakes import VM, only
from tests.unit.client.conftest import Vmtune
from vmtune.client.commands.migration.migrate import lines
from vmtune.client.connection.http import Client
from vmtune.client.views.evacuations import EvacuationProgression, plan_lines
from vmtune.client.views.progress import Progression


def test_a_plan_shows_where_all_go_and_stops_there(real: Api, vmtune: Vmtune) -> None:
    told = vmtune("evacuate", "a", "--plan")
    assert told.code == 0, told.err
    header, row, summary = told.out.splitlines()
    assert header.split() == ["VM", "MEMORY", "PRIORITY", "TO", "STATE"]
    assert row.split()[-2:] == ["b", "moves"]
    assert summary == "1 VM would move"
    assert vmtune("evacuation", "list").out == "no evacuations\n"


def test_a_plan_names_the_disks_and_the_room() -> None:
    disk = {"target": "vda", "path": "/i/db1", "capacity_bytes": 20 << 30}
    going = {
        **vm("db1"), "memory_bytes": 1 << 30, "priority": 0, "destination": "b", "state": "waiting",
        "reason": "", "blockers": [], "findings": [],
        "disks": [
            {**disk, "allocated_bytes": 2 << 30},
            {**disk, "target": "vdb", "allocated_bytes": None},
        ],
    }  # fmt: skip
    room = {
        "host": "b", "folders": ["/i"], "free_bytes": 40 << 30, "promised_bytes": 3 << 30,
        "needed_bytes": 2 << 30, "left_bytes": 35 << 30,
    }  # fmt: skip
    plan = {"vms": [going], "rooms": [room], "refused": {}, "movable": 1, "left": 0}
    assert list(plan_lines(plan))[2:] == [
        "db1 copies vda /i/db1, 2 GiB of 20 GiB; vdb /i/db1",
        "b /i: 40 GiB free, 3 GiB for other copies, 2 GiB for these VMs, 35 GiB left",
        "1 VM would move",
    ]


def test_remedies_are_told_of_all_that_stops_a_vm() -> None:
    found = [
        {"code": "final", "severity": "blocker", "remedy": "move it", "overridable": False},
        {"code": "open", "severity": "blocker", "remedy": "look", "overridable": True},
        {"code": "lifted", "severity": "blocker", "remedy": "nothing", "overridable": True},
        {"code": "told", "severity": "warning", "remedy": "wait", "overridable": False},
    ]
    stays = {
        **vm("db1"), "memory_bytes": 0, "priority": 0, "destination": "b", "state": "blocked",
        "reason": "two things", "blockers": ["open"], "overrides": ["lifted", "final"],
        "findings": found, "disks": [],
    }  # fmt: skip
    plan = {"vms": [stays], "rooms": [], "refused": {}, "movable": 0, "left": 1}
    assert list(plan_lines(plan))[2:] == [
        "db1: two things",
        "  move it",
        "  look",
        "0 VMs would move, 1 would remain",
        "to override: --override open",
    ]


def test_local_disks_are_asked_for(real: Api, vmtune: Vmtune) -> None:
    ran = vmtune("evacuate", "a", "--local-disks", "leave")
    assert ran.code == 0, ran.err  # the QEMU of the test has no disk
    listed = vmtune("evacuation", "list").out.splitlines()
    shown = vmtune("evacuation", "show", listed[1].split()[0])
    assert ["local", "disks:", "leave"] in [line.split() for line in shown.out.splitlines()]


def test_it_is_followed_to_its_end_and_listed(real: Api, vmtune: Vmtune) -> None:
    ran = vmtune("evacuate", "a", "--to", "b", "--order", "smallest-first")
    assert ran.code == 0, ran.err
    assert "1 VM would move" in ran.err
    assert "1 moved" in ran.out
    assert "any eligible" not in ran.out
    listed = vmtune("evacuation", "list", "--host", "a").out.splitlines()
    assert "1 of 1" in listed[1]
    id = listed[1].split()[0]
    shown = vmtune("evacuation", "show", id, "--json").document
    assert shown["id"].startswith(id)
    assert [vm["state"] for vm in shown["vms"]] == ["moved"]
    assert vmtune("evacuation", "watch", id).code == 0
    late = vmtune("evacuation", "cancel", id)
    assert late.code == 1
    assert "completed" in late.err
    assert vmtune("evacuation", "show", "ffff").code == 1


def test_what_stays_is_told_and_is_no_success(real: Api, vmtune: Vmtune) -> None:
    only(real.drivers["b"]).die()  # nothing waits there any more
    plan = vmtune("evacuate", "a", "--plan")
    assert plan.code == 2
    assert "0 VMs would move, 1 would remain" in plan.out
    assert "b: no QEMU there waits for it" in plan.out
    ran = vmtune("evacuate", "a")
    assert ran.code == 2
    assert "not placed" in ran.out
    assert "incomplete" in ran.out


def test_overrides_are_for_all_or_for_one(real: Api, vmtune: Vmtune) -> None:
    unknown = vmtune("evacuate", "a", "--plan", "--override", "nonsense")
    assert unknown.code == 1
    assert "not the code of a blocker" in unknown.err
    missing = vmtune("evacuate", "a", "--plan", "--override", "nobody:vm_cannot_migrate")
    assert missing.code == 1
    assert "no VM on a is named nobody" in missing.err
    name = vmtune("evacuate", "a", "--plan", "--json").document["vms"][0]["name"]
    for who in (name, str(VM)):
        over = vmtune("evacuate", "a", "--plan", "--json", "--override", f"{who}:vm_cannot_migrate")
        assert over.document["vms"][0]["overrides"] == ["vm_cannot_migrate"]


def maintained(vmtune: Vmtune) -> bool:
    return vmtune("host", "show", "a", "--json").document["maintenance_since"] is not None


@pytest.mark.parametrize("before", [False, True])
def test_a_refused_evacuation_leaves_the_maintenance_as_it_was(
    real: Api, vmtune: Vmtune, before: bool
) -> None:
    if before:
        assert vmtune("host", "maintenance", "a").code == 0
    # As a program asks: people are refused at the plan already.
    ran = vmtune("evacuate", "a", "--maintenance", "--override", "nosuch", "--json")
    assert ran.code == 1
    assert json.loads(ran.err)["errors"][0]["field"] == "overrides.0"
    assert maintained(vmtune) is before


def test_the_maintenance_stays_where_the_evacuation_begins(real: Api, vmtune: Vmtune) -> None:
    assert vmtune("evacuate", "a", "--maintenance", "--json").code == 0
    assert maintained(vmtune)


@pytest.fixture
def refusing(service: StubService) -> StubService:
    """A host whose maintenance can be changed; a test says what becomes of the evacuation."""
    service.on("GET", "/hosts/a", {**host("a"), "maintenance_since": None})
    service.on("PUT", "/hosts/a/maintenance", host("a"))
    return service


def changes(service: StubService) -> list[bool]:
    return [asked.body["on"] for asked in service.asked if asked.method == "PUT"]


@pytest.mark.parametrize("reply", [Reply(cut=True), refusal(504, detail="gateway timeout")])
def test_an_evacuation_that_may_have_begun_keeps_the_maintenance_and_says_so(
    refusing: StubService, vmtune: Vmtune, reply: Reply
) -> None:
    refusing.on("POST", "/hosts/a/evacuations", reply)
    ran = vmtune("evacuate", "a", "--maintenance", "--no-wait", "-q")
    assert ran.code == 1
    assert changes(refusing) == [True]
    assert "To see it: vmtune evacuation list --host a;" in ran.err
    assert "a is in maintenance; to end it: vmtune host maintenance a --end\n" in ran.err


def test_a_maintenance_that_cannot_be_ended_is_told_with_the_refusal(
    refusing: StubService, vmtune: Vmtune
) -> None:
    refusing.on("POST", "/hosts/a/evacuations", refusal(409, {"message": "it is evacuated"}))
    refusing.on("PUT", "/hosts/a/maintenance", host("a"), Reply(cut=True))
    ran = vmtune("evacuate", "a", "--maintenance", "--no-wait", "-q")
    assert ran.code == 1
    assert changes(refusing) == [True, False]
    assert "all the same" not in ran.err
    assert "a is in maintenance; to end it: vmtune host maintenance a --end\n" in ran.err
    assert "error: it is evacuated\n" in ran.err


def test_ctrl_c_at_the_request_says_that_the_maintenance_stays(
    refusing: StubService, vmtune: Vmtune, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Client, "post", interrupted)
    ran = vmtune("evacuate", "a", "--maintenance", "-q")
    assert ran.code == 130
    assert changes(refusing) == [True]
    assert "a is in maintenance; to end it: vmtune host maintenance a --end\n" in ran.err


def vm(name: str) -> dict[str, Any]:
    return {"vm": name.upper(), "name": name}


def test_how_far_all_and_each_are(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = EvacuationProgression([vm("db1"), vm("web")])
    record = {"moved": 1, "total": 3, "state": "running", "ended": False}
    assert shown.read(record)
    assert not shown.read(record)
    assert shown.stage == "1 of 3 VMs moved"
    shown.advance({"share": 0.5, "vms": {"DB1": 0.25, "WEB": 0.5}, "remaining_s": 30})
    assert shown.figures == "db1 25%, web 50%, about 30 s left"
    monkeypatch.setattr(sys, "stderr", _Terminal())
    shown.advance({"share": 0.4, "vms": {"DB1": 0.2}, "remaining_s": None})
    assert shown.share == 0.5  # never back, neither for all nor for one
    assert shown.figures.split() == ["db1", "━" * 6 + "┄" * 18, "25%"]
    shown.read({**record, "state": "completed", "ended": True, "moved": 3})
    assert (shown.share, shown.stage) == (1.0, "3 of 3 VMs moved, completed")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_migrations_place_in_the_queue_is_shown() -> None:
    record = migration("queued", queued=True, ahead=3, waiting_reason="2 of 2 leave rack1")
    shown = Progression()
    assert shown.read(record)
    assert shown.stage == "queued, 3 ahead: 2 of 2 leave rack1"
    told = "\n".join(lines(record))
    assert "3 ahead of it; waits because 2 of 2 leave rack1" in told

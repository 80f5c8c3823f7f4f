"""Two real services on one PostgreSQL, and a real lab whose hosts they share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.support.hosts.live import wait_for, why_no_lab
from tests.support.hosts.sharing import TAKEN_OVER_WITHIN_S, LiveFleet, SharingService, live_fleet
from tests.support.stores.postgres import why_no_postgres
from vmtune.client.connection.errors import ClientError, Refused
from vmtune.client.connection.http import Document
from vmtune.model.evacuation.evacuation import migration_id
from vmtune.model.workload import Workload

WHY_NOT = why_no_lab() or why_no_postgres()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never")
SLOW = {"max_bandwidth_bytes_per_s": "8MiB/s", "downtime_limit_ms": 450}
# Until it is told to go faster: less than what SMALL writes anew.
HELD = {**SLOW, "max_bandwidth_bytes_per_s": "1MiB/s"}
# Writes seldom, so that a slow migration comes to an end.
SMALL = {"memory_bytes": 64 << 20, "workload": Workload(region_bytes=16 << 20, idle_ms=5000)}


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveFleet]:
    with live_fleet(tmp_path_factory.mktemp("sharing"), number=62) as made:
        made.profile("slow", **SLOW)
        made.profile("held", **HELD)
        yield made


@pytest.fixture(autouse=True)
def _both_serve(it: LiveFleet) -> None:
    """Each test begins with two services, the first of which drives both hosts."""
    one, two = it.services
    for service in it.services:
        service.revive()
    it.service = one
    for host in "ab":
        if one.client.get(f"/hosts/{host}")["owner"] != one.name:
            it.give(host, one)
    wait_for(lambda: one.drives() == {"a", "b"} and not two.drives(), "the first to drive both")


def test_what_is_ordered_at_one_is_carried_and_cancelled_by_the_other(it: LiveFleet) -> None:
    two = it.services[1]
    with it.vm() as vm:
        record = two.client.post(
            "/migrations", {"vm": vm.uuid, "destination": "b", "profile": "slow"}
        )
        it.until_active(record)
        for service in it.services:
            with pytest.raises(Refused) as caught:
                service.client.put("/hosts/a/owner", {"service": two.name})
            assert caught.value.problems[0].code == "host_in_use"
        two.client.delete(f"/migrations/{record['id']}")
        done = it.ended(record)
        assert (done["state"], done["abort"]) == ("cancelled", "aborted")
        assert it.states(vm) == {"a": "running"}
    assert "goes on" not in two.said()


def test_a_host_is_emptied_by_order_of_one_that_does_not_drive_it(it: LiveFleet) -> None:
    one, two = it.services
    with it.vm(**SMALL) as first, it.vm(**SMALL) as second:
        made = two.client.post("/hosts/a/evacuations", {"profile": "held", "max_outgoing": 1})
        path = f"/hosts/a/evacuations/{made['id']}"
        vms = (first.uuid, second.uuid)

        def ordered() -> list[Document]:
            return [m for m in it.client.items("/migrations") if m["vm"] in vms]

        def states() -> list[str]:
            return [migration["state"] for migration in ordered()]

        def let_go() -> None:
            (held,) = (m["id"] for m in ordered() if m["state"] == "active")
            fast = {"values": {"max_bandwidth_bytes_per_s": 0}}
            one.client.patch(f"/migrations/{held}", fast)

        wait_for(lambda: "active" in states(), "one to migrate")
        # Who drives the host is asked to pause what the other carries, and to go on with it.
        one.client.post(f"{path}/pause")
        let_go()
        wait_for(lambda: two.client.get(path)["moved"] == 1, "the first to arrive")
        assert (states(), two.client.get(path)["state"]) == (["completed"], "paused")
        one.client.post(f"{path}/resume")
        wait_for(lambda: "active" in states(), "the second to migrate")
        let_go()
        wait_for(lambda: two.client.get(path)["ended"], "the evacuation to end")
        for service in it.services:
            done = service.client.get(path)
            assert (done["state"], done["moved"], done["left"]) == ("completed", 2, 0), done
        for vm in (first, second):
            assert it.states(vm) == {"b": "running"}
            its = list(two.client.items("/migrations", {"vm": vm.uuid}))
            assert [m["id"] for m in its] == [str(migration_id(UUID(made["id"]), UUID(vm.uuid)))]


@pytest.mark.parametrize("dies", [0, 1], ids=["who drives the host", "who carries it"])
def test_an_evacuation_goes_on_although_a_service_dies(it: LiveFleet, dies: int) -> None:
    two = it.services[1]
    lives = it.services[1 - dies]
    with it.vm(**SMALL) as first, it.vm(**SMALL) as second:
        made = two.client.post("/hosts/a/evacuations", {"profile": "slow", "max_outgoing": 1})
        path = f"/hosts/a/evacuations/{made['id']}"
        vms = (first.uuid, second.uuid)

        def ordered() -> list[Document]:
            return [m for m in lives.client.items("/migrations") if m["vm"] in vms]

        wait_for(lambda: "active" in [m["state"] for m in ordered()], "one to migrate")
        it.service = lives
        it.services[dies].kill()
        wait_for(lambda: lives.client.get(path)["ended"], "the evacuation to end", within_s=90)
        done = lives.client.get(path)
        assert (done["state"], done["moved"], done["left"]) == ("completed", 2, 0), done
        for vm in (first, second):
            assert it.states(vm) == {"b": "running"}
        # Each was moved once, by the one migration that the evacuation has for it.
        assert {m["id"]: m["state"] for m in ordered()} == {
            str(migration_id(UUID(made["id"]), UUID(vm))): "completed" for vm in vms
        }


def test_a_dead_ones_migration_is_the_others_within_30_s(it: LiveFleet) -> None:
    one, two = it.services
    with it.vm() as vm:
        record = it.migrate(vm, "b", profile="slow")
        it.until_active(record)
        it.service = two
        one.kill()
        wait_for(lambda: two.drives() == {"a", "b"}, "the hosts to go over", TAKEN_OVER_WITHIN_S)
        assert it.record(record)["state"] == "active"
        two.client.delete(f"/migrations/{record['id']}")
        done = it.ended(record)
        assert (done["state"], done["abort"], done["problems"]) == ("cancelled", "aborted", [])
        assert it.states(vm) == {"a": "running"}


def test_one_that_only_seemed_dead_changes_nothing_and_ends(it: LiveFleet) -> None:
    one, two = it.services
    with it.vm() as vm:
        record = it.migrate(vm, "b", profile="slow")
        it.until_active(record)
        it.service = two
        one.pause()
        wait_for(lambda: two.drives() == {"a", "b"}, "the hosts to go over", TAKEN_OVER_WITHIN_S)
        one.go_on()
        assert _refused(one, vm.uuid)
        assert one.process is not None
        assert one.process.wait(30) == 1
        assert "another service has taken over" in one.said()
        assert "Traceback" not in one.said()
        assert it.record(record)["state"] == "active"
        two.client.delete(f"/migrations/{record['id']}")
        done = it.ended(record)
        assert (done["state"], done["abort"], done["problems"]) == ("cancelled", "aborted", [])
        assert two.client.get(f"/vms/{vm.uuid}")["labels"] == {}


def _refused(woken: SharingService, vm: str) -> bool:
    """Whether what is asked of it is refused, or nobody answers any more."""
    try:
        woken.client.put(f"/vms/{vm}/labels", {"labels": {"tier": "db"}})
    except ClientError:
        return True
    return False


def test_a_name_is_taken_once(it: LiveFleet) -> None:
    one, two = it.services
    twin = two.environment | {"VMTUNE_SERVICE_NAME": one.name}
    folder = two.folder / "twin"
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "vmtune", "serve", "--listen-port", "0"]
    ended = subprocess.run(
        [*command, "--state-dir", str(folder), "--socket", str(folder / "s")],
        env=twin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    assert "service_name" in ended.stderr
    assert one.drives() == {"a", "b"}


def services_of(it: LiveFleet) -> list[Document]:
    return list(it.services[0].client.get("/services")["items"])


def test_the_services_are_listed(it: LiveFleet) -> None:
    one, two = services_of(it)
    assert (one["name"], one["here"], one["hosts"], one["state"]) == (
        "one", True, ["a", "b"], "running")  # fmt: skip
    assert (two["name"], two["here"], two["hosts"]) == ("two", False, [])

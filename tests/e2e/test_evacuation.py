"""A host of the lab is evacuated by the real service, which dies on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from uuid import UUID

import pytest

from tests.support.hosts.live import Live, live, wait_for, why_no_lab
from vmtune.client.cli import run as vmtune
from vmtune.client.connection.http import Document
from vmtune.model.evacuation.evacuation import migration_id
from vmtune.model.workload import Workload

NO_LAB = why_no_lab()
pytestmark = pytest.mark.skipif(bool(NO_LAB), reason=NO_LAB or "never")
# Writes seldom, so that a slow migration comes to an end.
SMALL = {
    "memory_bytes": 64 << 20,
    "workload": Workload(region_bytes=16 << 20, idle_ms=5000),
}


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("evacuation"), number=89) as made:
        # Slow enough to be killed in the middle.
        made.profile("slow", max_bandwidth_bytes_per_s="8MiB/s", downtime_limit_ms=450)
        made.profile("reaped", reaper_policy="aimd")
        yield made


def under_way(it: Live) -> list[Document]:
    return [m for m in it.client.get("/migrations")["items"] if not m["ended"]]


def test_all_that_can_move_move_once_although_the_service_is_killed(
    it: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        first, second, blocked = (stack.enter_context(it.vm(**SMALL)) for _ in range(3))
        for vm, profile in ((first, "slow"), (second, "slow"), (blocked, "reaped")):
            body = {"target": "vm", "key": vm.uuid, "profile": profile}
            it.client.post("/assignments", body)
        # It has no dirty ring, and its profile asks for a reaper.
        socket = ["--socket", str(it.client.socket_path)]
        assert vmtune(["evacuate", "a", "--plan", *socket]) == 2
        told = capsys.readouterr().out
        assert "2 VMs would move, 1 would remain" in told
        assert f"{blocked.name}: " in told
        assert "--override reaper_needs_ring" in told
        assert it.states(first) == {"a": "running"}

        made = it.client.post("/hosts/a/evacuations", {"max_outgoing": 1})
        path = f"/hosts/a/evacuations/{made['id']}"
        wait_for(lambda: any(m["state"] == "active" for m in under_way(it)), "one to migrate")
        it.service.kill()
        it.service.start()
        wait_for(lambda: it.client.get(path)["ended"], "the evacuation to end", within_s=120)

        done = it.client.get(path)
        assert (done["state"], done["moved"], done["left"]) == ("incomplete", 2, 1), done
        vms = {vm["vm"]: vm for vm in it.client.items(f"{path}/vms")}
        for vm in (first, second):
            assert it.states(vm) == {"b": "running"}
            assert vms[vm.uuid]["state"] == "moved"
            ordered = list(it.client.items("/migrations", {"vm": vm.uuid}))
            assert [m["id"] for m in ordered] == [
                str(migration_id(UUID(made["id"]), UUID(vm.uuid)))
            ]
            assert ordered[0]["state"] == "completed"
        assert it.states(blocked) == {"a": "running"}
        left = vms[blocked.uuid]
        assert (left["state"], left["blockers"]) == ("blocked", ["reaper_needs_ring"])
        assert left["migration"] is None

        # The blocker is overridden for this one, and the command follows it to its end.
        over = ["--override", f"{blocked.name}:reaper_needs_ring"]
        assert vmtune(["evacuate", "a", "--to", "b", *over, *socket]) == 0
        assert "completed" in capsys.readouterr().out
        assert it.states(blocked) == {"b": "running"}

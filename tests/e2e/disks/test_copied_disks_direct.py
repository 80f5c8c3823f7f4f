"""Disks on local storage are copied along with migrations of real QEMUs without libvirt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hosts.live import ENDED, Service, wait_for
from tests.support.qemus.direct_disks import (
    COPIED,
    DISK,
    MIB,
    SLOWLY,
    arrived_whole,
    image_tool,
    pair,
)
from tests.support.qemus.qemu import Build, alike, builds
from tests.support.served.removal import kill_while_removing
from vmtune.client.connection.errors import Refused

ALIKE = pytest.mark.parametrize("build", alike(), indirect=True)
BURST = 16 * MIB
"""QEMU copies up to so much at once, whatever the limit is, then stands as long as that takes."""


def test_a_disk_is_copied(service: Service, build: Build, tmp_path: Path) -> None:
    with pair(service, build, tmp_path) as it:
        done = it.ended(it.migrate(**COPIED))
        assert (done["state"], done["problems"]) == ("completed", []), done["failure"]
        (disk,) = done["disks"]
        assert (disk["target"], disk["created"]) == (DISK, False)
        assert disk["copied_bytes"] == disk["total_bytes"] > 0
        assert {o["tunable"]: o["status"] for o in done["outcomes"]} == {
            "copy_storage": "effective"
        }
        facts = service.client.get(f"/vms/{it.vm}")
        assert (facts["host"], facts["state"]) == (it.names[1], "running")
        assert it.left() == []
        it.qemus[1].stop()
        assert arrived_whole(it)


def test_a_copy_is_helped_while_it_is_made(service: Service, build: Build, tmp_path: Path) -> None:
    with pair(service, build, tmp_path) as it:
        record = it.migrate(**{**COPIED, "max_bandwidth_bytes_per_s": MIB})
        wait_for(lambda: it.copying(record), "the copy to be under way")
        assert it.now(record)["phase"] == "disks"
        address = f"/migrations/{record['id']}"
        wait_for(lambda: it.now(record)["disks"][0]["left_ms"], "the time left to be known")
        (disk,) = it.now(record)["disks"]
        # A rate is told after 2 s.
        assert disk["converges"] and 0 < disk["bytes_per_s"] <= BURST / 2 + MIB
        waits = {"copy_synchronous_writes": True}
        if build.release >= (8, 2):
            done = service.client.patch(address, {"values": waits})["step_records"][-1]
            assert done["effect"] == "done"
        else:
            with pytest.raises(Refused, match="is older"):
                service.client.patch(address, {"values": waits})
        service.client.patch(address, {"values": {"max_bandwidth_bytes_per_s": "1GiB/s"}})
        done = it.ended(record)
        assert (done["state"], done["problems"]) == ("completed", []), done["failure"]
        assert done["phase"] is None
        (disk,) = done["disks"]
        at_1_mib_per_s = (disk["total_bytes"] - BURST) / MIB
        assert disk["ready_ms"] / 1000 < at_1_mib_per_s
        it.qemus[1].stop()
        assert arrived_whole(it)


def test_a_step_helps_a_copy_while_it_is_made(
    service: Service, build: Build, tmp_path: Path
) -> None:
    if build.release < (8, 2):
        pytest.skip("it does not change a copy that runs")
    with pair(service, build, tmp_path) as it:
        profile = f"helps-{it.names[0]}"
        waits = {"when": {"after_s": 1}, "then": {"set": {"copy_synchronous_writes": True}}}
        service.client.post("/profiles", {"name": profile, "values": SLOWLY, "steps": [waits]})
        body = {"vm": it.vm, "destination": it.names[1], "profile": profile}
        done = it.ended(service.client.post("/migrations", body))
        assert (done["state"], done["problems"]) == ("completed", []), done["failure"]
        (taken,) = done["step_records"]
        assert (taken["number"], taken["effect"]) == (0, "done"), taken["detail"]
        assert taken["at_ms"] < done["disks"][0]["ready_ms"]
        it.qemus[1].stop()
        assert arrived_whole(it)


@ALIKE
def test_an_abort_while_disks_are_copied(service: Service, build: Build, tmp_path: Path) -> None:
    with pair(service, build, tmp_path) as it:
        record = it.migrate(**SLOWLY)
        wait_for(lambda: it.copying(record), "the copy to be under way")
        service.client.delete(f"/migrations/{record['id']}")
        done = it.ended(record)
        assert (done["state"], done["problems"]) == ("cancelled", []), done["failure"]
        facts = service.client.get(f"/vms/{it.vm}")
        assert (facts["host"], facts["state"]) == (it.names[0], "running")
        assert it.left() == []


@ALIKE
def test_a_service_that_is_killed_while_disks_are_copied_leaves_nothing(
    service: Service, build: Build, tmp_path: Path
) -> None:
    with pair(service, build, tmp_path) as it:
        record = it.migrate(**SLOWLY)
        wait_for(lambda: it.copying(record), "the copy to be under way")
        service.kill()
        service.start()
        done = it.ended(record)
        assert done["state"] == "failed"
        facts = service.client.get(f"/vms/{it.vm}")
        assert (facts["host"], facts["state"]) == (it.names[0], "running")
        assert it.left() == []


def test_a_service_that_is_killed_while_memory_is_sent_completes(
    service: Service, build: Build, tmp_path: Path
) -> None:
    """Nobody but vmtune ends the copies at the switchover, for which the guest stands still."""
    with pair(service, build, tmp_path) as it:
        slowly = {**COPIED, "max_bandwidth_bytes_per_s": 16 * MIB, "downtime_limit_ms": 1}
        record = it.migrate(**slowly)
        wait_for(lambda: it.now(record)["state"] in ("active", *ENDED), "the memory to be sent")
        service.kill()
        service.start()
        done = it.ended(record)
        assert done["state"] == "completed", done["failure"]
        facts = service.client.get(f"/vms/{it.vm}")
        assert (facts["host"], facts["state"]) == (it.names[1], "running")
        assert it.left() == []
        it.qemus[1].stop()
        assert arrived_whole(it)


def test_a_disk_that_both_have_is_not_copied_onto_itself(service: Service, tmp_path: Path) -> None:
    build = builds()[0]
    if build.why_not:
        pytest.skip(build.why_not)
    with pair(service, build, tmp_path, same=True) as it:
        with pytest.raises(Refused) as refused:
            it.migrate(**COPIED)
        assert [problem.code for problem in refused.value.problems] == ["copy_onto_itself"]


def test_a_disk_that_is_not_copied_has_to_be_the_same_file(
    service: Service, build: Build, tmp_path: Path
) -> None:
    """The guest would run on with what the QEMU that waits has."""
    folders = [tmp_path / name for name in ("apart", "shared")]
    for folder in folders:
        folder.mkdir()
    with pair(service, build, folders[0]) as it:
        with pytest.raises(Refused) as refused:
            it.migrate()
        assert [problem.code for problem in refused.value.problems] == ["disk_differs"]
    with pair(service, build, folders[1], same=True) as it:
        done = it.ended(it.migrate())
        assert (done["state"], done["problems"]) == ("completed", []), done["failure"]


@ALIKE
def test_the_sources_image_goes_where_nothing_else_names_it(
    service: Service, build: Build, tmp_path: Path
) -> None:
    with pair(service, build, tmp_path) as it:
        done = it.ended(it.migrate(**COPIED, copy_source_images="remove"))
        assert (done["state"], done["problems"]) == ("completed", []), done["failure"]
        assert done["disks"][0]["source_image"] == "removed"
        assert [image.exists() for image in it.images] == [False, True]
        it.qemus[1].stop()
        assert arrived_whole(it)


@ALIKE
def test_the_sources_image_stays_where_another_lies_on_it(
    service: Service, build: Build, tmp_path: Path
) -> None:
    with pair(service, build, tmp_path) as it:
        top = it.images[0].with_name("top.qcow2")
        create = ("qemu-img", "create", "-q", "-u", "-f", "qcow2", "-F", "qcow2")
        image_tool(*create, "-b", it.images[0].name, str(top), "48M")
        done = it.ended(it.migrate(**COPIED, copy_source_images="remove"))
        assert done["state"] == "completed", done["failure"]
        assert [each["code"] for each in done["problems"]] == ["source_image_kept"]
        assert "top.qcow2 lies on it" in done["disks"][0]["source_image_reason"]
        assert it.images[0].exists()


@ALIKE
def test_a_service_that_is_killed_while_it_removes_the_image_finishes_it(
    service: Service, build: Build, tmp_path: Path
) -> None:
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pair(service, build, folder) as it:
            record = it.migrate(**COPIED, copy_source_images="remove")
            seen = kill_while_removing(service)
            done = it.ended(record)
            assert (done["state"], done["problems"]) == ("completed", []), done["failure"]
            assert done["disks"][0]["source_image"] == "removed"
            assert [image.exists() for image in it.images] == [False, True]
        if seen:
            return
    pytest.fail("it was over each time before it was seen")


@ALIKE
def test_the_sources_image_stays_where_the_migration_is_aborted(
    service: Service, build: Build, tmp_path: Path
) -> None:
    with pair(service, build, tmp_path) as it:
        record = it.migrate(**SLOWLY, copy_source_images="remove")
        wait_for(lambda: it.copying(record), "the copy to be under way")
        service.client.delete(f"/migrations/{record['id']}")
        done = it.ended(record)
        assert (done["state"], done["disks"][0]["source_image"]) == ("cancelled", "kept")
        assert it.images[0].exists()


@ALIKE
def test_an_evacuation_copies_the_disk_or_leaves_the_vm(
    service: Service, build: Build, tmp_path: Path
) -> None:
    with pair(service, build, tmp_path) as it:
        here = f"/hosts/{it.names[0]}/evacuations"
        body: dict[str, object] = {"destinations": [it.names[1]]}
        plan = service.client.post(f"{here}/plan", {**body, "local_disks": "leave"})
        assert (plan["movable"], plan["left"]) == (0, 1)
        assert f"local disks, and this evacuation leaves those: {DISK}" in plan["vms"][0]["reason"]
        body["local_disks"] = "copy"
        plan = service.client.post(f"{here}/plan", body)
        (vm,) = plan["vms"]
        assert [disk["target"] for disk in vm["disks"]] == [DISK], vm["reason"]
        made = service.client.post(here, body)
        where = f"{here}/{made['id']}"
        wait_for(lambda: service.client.get(where)["ended"], "the evacuation to end")
        assert service.client.get(where)["state"] == "completed"
        (moved,) = service.client.items(f"{where}/vms")
        record = service.client.get(f"/migrations/{moved['migration']}")
        assert [disk["target"] for disk in record["disks"]] == [DISK]
        assert record["values"] == {"copy_storage": True, "copy_disks": DISK}
        it.qemus[1].stop()
        assert arrived_whole(it)

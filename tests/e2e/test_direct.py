"""Migrations of real QEMUs without libvirt, through the real service."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.hosts.live import ENDED, Service, wait_for
from tests.support.qemus.qemu import Build, builds, running
from vmtune.client.connection.http import Document

VALUES = {
    "multifd": True,
    "multifd_channels": 3,
    "multifd_compression": "zlib",
    "downtime_limit_ms": 450,
    "announce_rounds": 3,
    "iothread_poll_max_ns": 1000,
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    made = Service(tmp_path_factory.mktemp("direct"))
    made.start()
    try:
        made.client.post("/profiles", {"name": "p", "values": VALUES})
        yield made
    finally:
        made.stop()


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.label)
def test_tuned_proven_and_reset(service: Service, build: Build, tmp_path: Path) -> None:
    if build.why_not:
        pytest.skip(build.why_not)
    vm, names = uuid4(), [f"{side}-{secrets.token_hex(2)}" for side in "ab"]
    folders = [tmp_path / "a", tmp_path / "b"]
    waits = ("-incoming", "defer")
    with running(build, folders[0], uuid=vm), running(build, folders[1], uuid=vm, extra=waits):
        for name, folder in zip(names, folders, strict=True):
            service.client.post("/hosts", {"name": name, "uri": f"qmp+unix://{folder}"})
        order = {"vm": str(vm), "destination": names[1], "profile": "p"}
        record = service.client.post("/migrations", order)

        def now() -> Document:
            return service.client.get(f"/migrations/{record['id']}")

        wait_for(lambda: now()["state"] in ENDED, "the migration to end")
        done = now()
        assert done["state"] == "completed", done["failure"]
        assert done["totals"]["total_time_ms"] > 0
        statuses = {o["tunable"]: o["status"] for o in done["outcomes"]}
        assert statuses == dict.fromkeys(VALUES, "effective")
        facts = service.client.get(f"/vms/{vm}")
        assert facts["host"] == names[1]
        readings = service.client.get(f"/vms/{vm}/effective")["readings"]
        assert readings["multifd"]["value"] is False
        assert readings["multifd_channels"]["value"] == 2
        assert readings["iothread_poll_max_ns"]["value"] == 1000
        for name in names:
            service.client.delete(f"/hosts/{name}")


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.label)
def test_a_guest_that_a_step_paused_goes_on_where_it_arrives(
    service: Service, build: Build, tmp_path: Path
) -> None:
    """Nobody but vmtune lets it go on: QEMU hands the pause on with the guest."""
    if build.why_not:
        pytest.skip(build.why_not)
    profile = f"pausing-{build.label}"
    steps = [
        {"when": {"after_iterations": 0}, "then": {"do": "pause"}},
        {"when": {"after_iterations": 0}, "then": {"set": {"max_bandwidth_bytes_per_s": 0}}},
    ]
    # It does not end by itself, so that it is seen active however busy the machine is.
    values = {"max_bandwidth_bytes_per_s": 16 << 10, "downtime_limit_ms": 1}
    body = {"name": profile, "values": values, "steps": steps}
    service.client.post("/profiles", body)
    vm, names = uuid4(), [f"{side}-{secrets.token_hex(2)}" for side in "ab"]
    folders = [tmp_path / "a", tmp_path / "b"]
    waits = ("-incoming", "defer")
    with running(build, folders[0], uuid=vm), running(build, folders[1], uuid=vm, extra=waits):
        for name, folder in zip(names, folders, strict=True):
            service.client.post("/hosts", {"name": name, "uri": f"qmp+unix://{folder}"})
        order = {"vm": str(vm), "destination": names[1], "profile": profile}
        record = service.client.post("/migrations", order)

        def now() -> Document:
            return service.client.get(f"/migrations/{record['id']}")

        wait_for(lambda: now()["state"] in ENDED, "the migration to end")
        done = now()
        assert (done["state"], done["problems"]) == ("completed", []), done["failure"]
        assert [step["effect"] for step in done["step_records"]] == ["done", "done"]
        facts = service.client.get(f"/vms/{vm}")
        assert (facts["host"], facts["state"]) == (names[1], "running")
        for name in names:
            service.client.delete(f"/hosts/{name}")

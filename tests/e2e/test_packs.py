"""A tunable pack on real, unpatched QEMUs, through the real service: what the pack ``qemu-live``
names is found, planned, applied, verified, carried along by a migration, and reverted."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.support.hosts.live import ENDED, Service, wait_for
from tests.support.qemus.qemu import SMALL_PC, Build, builds, running
from vmtune.client.connection.errors import Refused
from vmtune.client.connection.http import Document
from vmtune.packs import load

PARTS = (
    *SMALL_PC,
    "-device", "virtio-balloon-pci,id=balloon0",
    "-object", "throttle-group,id=slow",
    "-object", "throttle-group,id=fast,x-iops-total=900",
)  # fmt: skip
VALUES = {
    "guest_stats_interval_s": 7,
    "throttle_requests_per_s_count": 250,
    "throttle_rate_bytes_per_s": 5_000_000,
}
BEFORE = {
    "guest_stats_interval_s": {"balloon0": 0},
    "throttle_requests_per_s_count": {"slow": 0, "fast": 900},
    "throttle_rate_bytes_per_s": {"slow": 0, "fast": 0},
}
AFTER = {name: dict.fromkeys(parts, VALUES[name]) for name, parts in BEFORE.items()}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    (pack,) = load(["qemu-live"])
    allowed = ",".join(name.removeprefix("qom:") for name in sorted(pack.consents))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VMTUNE_PACKS", "qemu-live,qemu-patched")
        patch.setenv("VMTUNE_ALLOW_QOM", allowed)
        made = Service(tmp_path_factory.mktemp("packs"))
        made.start()
    try:
        made.client.post("/profiles", {"name": "p", "values": VALUES})
        made.client.post("/profiles", {"name": "q", "values": {"qemu_pool_resize_period_s": 15}})
        yield made
    finally:
        made.stop()


def parts_of(service: Service, vm: UUID) -> dict[str, dict[str, object]]:
    """What each part of each of the pack's tunables is set to."""
    readings = service.client.get(f"/vms/{vm}/effective")["readings"]
    return {name: readings[name]["parts"] for name in VALUES}


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.label)
def test_what_unpatched_qemu_has_is_tuned_by_a_pack(
    service: Service, build: Build, tmp_path: Path
) -> None:
    if build.why_not:
        pytest.skip(build.why_not)
    vm, names = uuid4(), [f"{side}-{secrets.token_hex(2)}" for side in "ab"]
    folders = [tmp_path / "a", tmp_path / "b"]
    waits = ("-incoming", "defer")
    client = service.client
    with (
        running(build, folders[0], uuid=vm, machine=PARTS),
        running(build, folders[1], uuid=vm, machine=PARTS, extra=waits),
    ):
        for name, folder in zip(names, folders, strict=True):
            client.post("/hosts", {"name": name, "uri": f"qmp+unix://{folder}"})
        assert parts_of(service, vm) == BEFORE
        plan = client.post(f"/vms/{vm}/plan", {"profile": "p"})
        assert plan["findings"] == []
        assert {item["tunable"] for item in plan["items"] if item["differs"]} == set(VALUES)

        done = client.post(f"/vms/{vm}/applications", {"profile": "p"})
        assert done["state"] == "applied", done["problems"]
        assert {o["status"] for o in done["outcomes"]} == {"effective"}
        assert parts_of(service, vm) == AFTER
        assert client.post(f"/vms/{vm}/verify")["clean"] is True

        reverted = client.post(f"/applications/{done['id']}/revert")
        assert reverted["state"] == "reverted"
        assert parts_of(service, vm) == BEFORE

        order = {"vm": str(vm), "destination": names[1], "profile": "p"}
        record = client.post("/migrations", order)

        def now() -> Document:
            return client.get(f"/migrations/{record['id']}")

        wait_for(lambda: now()["state"] in ENDED, "the migration to end")
        assert now()["state"] == "completed", now()["failure"]
        assert client.get(f"/vms/{vm}")["host"] == names[1]
        assert {o["status"] for o in now()["outcomes"]} == {"effective"}
        assert parts_of(service, vm) == AFTER  # QEMU does not hand them on: vmtune does
        for name in names:
            client.delete(f"/hosts/{name}")


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.label)
def test_what_only_a_patched_qemu_has_is_not_offered(
    service: Service, build: Build, tmp_path: Path
) -> None:
    if build.why_not:
        pytest.skip(build.why_not)
    vm, name = uuid4(), f"a-{secrets.token_hex(2)}"
    with running(build, tmp_path, uuid=vm):
        service.client.post("/hosts", {"name": name, "uri": f"qmp+unix://{tmp_path}"})
        plan = service.client.post(f"/vms/{vm}/plan", {"profile": "q"})
        assert "not_offered_by_qemu" in plan["blockers"]
        plan = service.client.post(f"/vms/{vm}/plan", {"profile": "p"})
        assert {f["message"] for f in plan["findings"]} == {
            "it needs an object of the type virtio-balloon-pci, and the VM has none",
            "it needs an object of the type throttle-group, and the VM has none",
        }
        with pytest.raises(Refused):
            service.client.post(f"/vms/{vm}/applications", {"profile": "q"})
        service.client.delete(f"/hosts/{name}")

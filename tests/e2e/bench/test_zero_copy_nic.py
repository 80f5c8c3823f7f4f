"""The campaign of zero-copy over two network devices, cut short: a veth pair stands for a card's
ports, over which the kernel copies. With a patched QEMU, whose sends are counted. Where libvirt
may not raise the limit of locked memory the campaign is refused, and both its arms copy here."""

from __future__ import annotations

import secrets
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts.live import Service, wait_for, why_no_lab
from tests.support.qemus.patched_build import patched
from vmtune import lab
from vmtune.bench.report.report import from_document
from vmtune.client.views.sends import sends
from vmtune.errors import LabError
from vmtune.reference.files import scenario_file
from vmtune.remote.errors import Refused

WHY_NOT = why_no_lab() or patched().why_not
pytestmark = [
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never"),
    pytest.mark.long,
]

MEMORY = 128 << 20


def ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def devices() -> Iterator[tuple[str, str]]:
    """Two that are joined, as ports are by a cable."""
    token = secrets.token_hex(2)
    a, b = f"vt{token}a", f"vt{token}b"
    ip("link", "add", a, "type", "veth", "peer", "name", b)
    try:
        yield a, b
    finally:
        # Unlike a card's port it ends with its namespace.
        subprocess.run(["ip", "link", "delete", a], capture_output=True, check=False)


@pytest.fixture(scope="module")
def settings(devices: tuple[str, str]) -> lab.LabSettings:
    token, net = secrets.token_hex(2), f"10.{secrets.randbelow(50) + 180}.7"
    return lab.LabSettings(
        name_a=f"vt-{token}-a",
        name_b=f"vt-{token}-b",
        address_a=f"{net}.1/24",
        address_b=f"{net}.2/24",
        folder=Path(f"/run/vt-{token}"),
        qemu=Path(patched().program),
        device_a=devices[0],
        device_b=devices[1],
    )


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, settings: lab.LabSettings
) -> Iterator[Service]:
    used = ip("address", "add", "10.179.7.9/32", "dev", settings.device_a)
    assert used == ""
    with pytest.raises(LabError) as refused:
        lab.up(settings)
    (problem,) = refused.value.problems
    assert (problem.field, problem.code) == ("device_a", "device_unusable")
    assert "10.179.7.9" in problem.message
    ip("address", "flush", "dev", settings.device_a)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="vt-") as base:
        patch.setenv("VMTUNE_BENCH_DIR", f"{base}/b")
        for name in ("folder", "name_a", "name_b", "address_a", "address_b", "qemu"):
            patch.setenv(f"VMTUNE_LAB_{name.upper()}", str(getattr(settings, name)))
        lab.up(settings)
        made = Service(tmp_path_factory.mktemp("zero-copy"))
        try:
            made.start()
            yield made
        finally:
            made.stop()
            lab.down(settings)
            assert lab.status(settings).state == "down"


def may_lock() -> bool:
    """Whether libvirt may raise the limit: CAP_SYS_RESOURCE is the 24th."""
    (line,) = (
        line for line in Path("/proc/self/status").read_text().splitlines() if "CapEff" in line
    )
    return bool(int(line.split()[1], 16) >> 24 & 1)


def cut() -> dict[str, Any]:
    plan = tomllib.loads(scenario_file("zero-copy-nic").text)
    plan["blocks"] = 1
    plan["cells"] = plan["cells"][:1]
    plan["scenario"] |= {
        "vm": {"memory_bytes": MEMORY, "vcpus": 1},
        "workload": {
            "region_bytes": 64 << 20,
            "random_percent": 100,
            "idle_ms": 1000,
            "beat_ms": 5,
        },
        "values": {"multifd": True, "multifd_channels": 2},
        "warmup_s": 1,
        "cooldown_s": 0,
    }
    return plan


def test_it_runs_over_the_devices_to_its_report(
    service: Service, settings: lab.LabSettings
) -> None:
    for which in "ab":
        name = getattr(settings, f"name_{which}")
        shown = ip("-n", name, "-brief", "address", "show")
        assert getattr(settings, f"device_{which}") in shown
        assert getattr(settings, f"address_{which}") in shown
    client = service.client
    plan = cut()
    if not may_lock():
        with pytest.raises(Refused, match="lockable memory"):
            client.post("/campaigns", plan)
        for arm in plan["arms"]:
            arm.pop("values", None)
    id = client.post("/campaigns", plan)["id"]
    wait_for(lambda: bool(client.get(f"/campaigns/{id}")["ended"]), "it to end", within_s=600)
    record = client.get(f"/campaigns/{id}")
    assert (record["state"], record["done"]) == ("completed", record["total"])
    report = from_document(client.get("/comparisons", {"campaign": id}))
    assert len(report.cells) == 1
    runs = [client.get(f"/runs/{run['id']}") for run in client.items("/runs", {"campaign": id})]
    counted = [run for run in runs if run["slot"]["block"] > 0]
    assert {run["slot"]["arm"] for run in counted} == {"copied", "zero copy"}
    for run in counted:
        assert run["state"] == "completed", run["failure"]
        metrics, found = run["metrics"], run["record"]["sends"]
        assert metrics["sendmsg_cpu_ms_per_gib"] > 0
        assert found["total"]["sent_bytes"] > 64 << 20
        assert len(found["iterations"]) > 1
        assert "15 times less" in "\n".join(sends(found))
        if run["values"].get("zero_copy_send"):
            assert found["total"]["zero_copy_sends"] > 0
            # All that was confirmed was copied: what was sent since the last flush is open.
            assert metrics["zero_copy_copied_percent"] > 50
            assert found["total"]["flushes"] > 0
        else:
            assert "zero_copy_copied_percent" not in metrics

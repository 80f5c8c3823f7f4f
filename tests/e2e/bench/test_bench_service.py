"""Benchmark runs through the real service with real QEMUs, and through its sudden death."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts.live import Service, wait_for
from tests.support.qemus.qemu import installed
from vmtune.bench.files import exchange
from vmtune.bench.run_folder import processes_of
from vmtune.client.connection.http import Document

NO_QEMU = installed().why_not
pytestmark = pytest.mark.skipif(bool(NO_QEMU), reason=NO_QEMU or "never")

TINY: dict[str, Any] = {
    "name": "test/tiny",
    "vm": {"memory_bytes": "64Mi"},
    "workload": {"region_bytes": "16Mi", "beat_ms": 5},
    "warmup_s": 0,
    "cooldown_s": 0,
    "max_seconds": 60,
    "max_iterations": 1000,
}


def order(service: Service, **changes: Any) -> str:
    return str(service.client.post("/runs", {"scenario": {**TINY, **changes}})["id"])


def run(service: Service, id: str) -> Document:
    return service.client.get(f"/runs/{id}")


def ended(service: Service, id: str) -> Document:
    wait_for(lambda: run(service, id)["ended"], "the run to end")
    return run(service, id)


def running(service: Service, base: Path) -> str:
    """A run in the middle of which nothing would end by itself."""
    id = order(service, warmup_s=600)
    wait_for(lambda: run(service, id)["state"] == "running", "the run to begin")
    wait_for(lambda: len(processes_of(base)) >= 2, "its QEMUs to be there")
    return id


def test_a_run_is_measured_recorded_and_exported(service: Service, base: Path) -> None:
    done = ended(service, order(service, values={"multifd": True, "multifd_channels": 2}))
    assert done["state"] == "completed", done["failure"]
    assert done["metrics"]["total_time_ms"] > 0
    statuses = {o["tunable"]: o["status"] for o in done["record"]["outcomes"]}
    assert statuses == {"multifd": "effective", "multifd_channels": "effective"}
    assert done["lengths"]["samples"] > 0
    assert done["lengths"]["cpu"] > 0
    assert done["environment"]["qemu"]["version"]
    exported = exchange.from_document(service.client.get(f"/runs/{done['id']}/export"))
    assert exported.metrics == done["metrics"]
    assert exported.record is not None
    assert len(exported.record.samples) == done["lengths"]["samples"]
    assert not (base / "b").exists()


def test_a_run_is_cancelled_in_its_middle(service: Service, base: Path) -> None:
    id = running(service, base)
    service.client.delete(f"/runs/{id}")
    done = ended(service, id)
    assert done["state"] == "cancelled"
    wait_for(lambda: not processes_of(base), "its QEMUs to be gone")
    assert not (base / "b").exists()


def test_a_killed_service_ends_what_runs_and_goes_on_with_what_waits(
    service: Service, base: Path
) -> None:
    interrupted, waiting = running(service, base), order(service)
    assert run(service, waiting)["ahead"] == 1
    service.kill()
    service.start()
    first = ended(service, interrupted)
    assert (first["state"], first["counts"]) == ("interrupted", False)
    assert "service ended" in first["failure"]
    done = ended(service, waiting)
    assert done["state"] == "completed", done["failure"]
    assert processes_of(base) == []
    assert not (base / "b").exists()
    ids = [r["id"] for r in service.client.items("/runs", {"scenario": "test/tiny"})]
    assert ids.count(interrupted) == ids.count(waiting) == 1


def test_a_service_that_is_stopped_takes_its_run_down(service: Service, base: Path) -> None:
    id = running(service, base)
    assert service.process is not None
    service.process.terminate()
    service.process.wait(20)
    wait_for(lambda: not processes_of(base), "its QEMUs to be gone")
    service.start()
    assert ended(service, id)["state"] == "interrupted"

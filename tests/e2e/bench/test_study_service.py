"""A study through the real service with real QEMUs, and through its sudden deaths."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts.live import Service, wait_for
from tests.support.qemus.qemu import installed
from vmtune.bench.run_folder import processes_of
from vmtune.client.connection.http import Document

NO_QEMU = installed().why_not
pytestmark = pytest.mark.skipif(bool(NO_QEMU), reason=NO_QEMU or "never")

STUDY: dict[str, Any] = {
    "name": "tiny",
    "scenario": {
        "name": "test/tiny-study",
        "vm": {"memory_bytes": "64Mi"},
        "workload": {"region_bytes": "16Mi", "beat_ms": 5},
        "values": {"max_bandwidth_bytes_per_s": "8MiB/s", "downtime_limit_ms": 5000},
        "warmup_s": 0,
        "cooldown_s": 0,
        "max_seconds": 60,
        "max_iterations": 1000,
    },
    "objective": "minimise total_time_ms where completed",
    # A limit that is there to be taken away: what is better is known.
    "space": {"multifd": {}, "max_bandwidth_bytes_per_s": ["8MiB/s", "1GiB/s"]},
    "budget": {"runs": 22},
    "confirm_blocks": 6,
    "finalists": 1,
    "rivals": False,
    "seed": 1,
}


def test_a_study_survives_sudden_deaths_and_ends_with_its_result(
    service: Service, base: Path
) -> None:
    id = str(service.client.post("/studies", STUDY)["id"])

    def look() -> Document:
        return service.client.get(f"/studies/{id}")

    def runs(**of: str) -> list[Document]:
        return list(service.client.items("/runs", of or {"study": id}))

    def confirms() -> bool:
        record = look()
        assert not record["ended"], record["reason"]
        campaign = record["campaign"]
        states = {run["state"] for run in runs(campaign=campaign)} if campaign else set()
        return {"completed", "running"} <= states

    wait_for(
        lambda: look()["used"]["runs"] >= 1 and any(r["state"] == "running" for r in runs()),
        "a run to be in its middle",
        within_s=120,
    )
    service.kill()
    service.start()
    wait_for(confirms, "a run of the confirmation to be in its middle", within_s=400)
    service.kill()
    service.start()
    wait_for(lambda: look()["ended"], "the study to end", within_s=400)
    record = look()
    assert record["state"] == "completed", record["reason"]
    assert record["result"]["finding"] == "better"
    trials = list(service.client.items(f"/studies/{id}/trials"))
    told = Counter(run["run"] for one in trials for run in one["runs"] if run["run"])
    assert told == Counter(run["id"] for run in runs() if run["counts"])
    assert {run["state"] for run in runs()} <= {"completed", "interrupted"}
    assert trials[0]["medians"]["total_time_ms"] > 0
    (campaign,) = service.client.items("/campaigns")
    assert (campaign["id"], campaign["state"]) == (record["campaign"], "completed")
    fresh = runs(campaign=record["campaign"])
    assert not {run["id"] for run in fresh} & {run["id"] for run in runs()}
    counted = Counter((run["slot"]["block"], run["slot"]["arm"]) for run in fresh
                      if run["counts"] and run["slot"]["block"])  # fmt: skip
    assert len(counted) == 12
    assert set(counted.values()) == {1}
    assert record["result"]["evidence"]
    drafted = record["result"]["draft"]
    assert [each["name"] for each in service.client.items("/profiles")] == [drafted["profile"]]
    assert service.client.get("/assignments")["items"] == []
    assert processes_of(base) == []

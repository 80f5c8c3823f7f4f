"""A campaign through the real service with real QEMUs, and through its sudden deaths."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts.live import Service, wait_for
from tests.support.qemus.qemu import installed
from vmtune.bench.report.report import from_document
from vmtune.bench.run_folder import processes_of
from vmtune.client.cli import run as vmtune
from vmtune.client.connection.http import Document

NO_QEMU = installed().why_not
pytestmark = pytest.mark.skipif(bool(NO_QEMU), reason=NO_QEMU or "never")

PLAN: dict[str, Any] = {
    "name": "tiny",
    "scenario": {
        "name": "test/tiny-campaign",
        "vm": {"memory_bytes": "64Mi"},
        "workload": {"region_bytes": "16Mi", "beat_ms": 5},
        "warmup_s": 0,
        "cooldown_s": 0,
        "max_seconds": 60,
        "max_iterations": 1000,
    },
    "blocks": 2,
    "arms": [
        {"name": "stock"},
        {"name": "tuned", "values": {"multifd": True, "multifd_channels": 2}},
    ],
}


def runs(service: Service, id: str) -> list[Document]:
    """Oldest first."""
    return list(service.client.items("/runs", {"campaign": id}))[::-1]


def test_a_campaign_survives_sudden_deaths_and_none_is_lost_or_counted_twice(
    service: Service, base: Path, tmp_path: Path
) -> None:
    id = str(service.client.post("/campaigns", PLAN)["id"])

    def look() -> Document:
        return service.client.get(f"/campaigns/{id}")

    for done in (0, 2):  # in the warm-up, and in the middle of a block
        wait_for(
            lambda done=done: (
                look()["done"] >= done  # type: ignore[misc]  # a default is typed
                and look()["runs"].get("running", 0) == 1
                and len(processes_of(base)) >= 2
            ),
            "a run to be in its middle",
        )
        service.kill()
        service.start()
    wait_for(lambda: look()["ended"], "the campaign to end", within_s=180)
    record = look()
    assert (record["state"], record["done"], record["total"]) == ("completed", 5, 5)
    found = runs(service, id)
    # A death between a run's end and its record's would leave none interrupted.
    assert Counter(run["state"] for run in found)["completed"] == 5
    assert {run["state"] for run in found} <= {"completed", "interrupted"}
    assert len(found) > 5
    counted = [(r["slot"]["arm"], r["slot"]["block"]) for r in found if r["counts"]]
    assert Counter(counted[1:]) == {(a, b): 1 for a in ("stock", "tuned") for b in (1, 2)}
    assert [block for _, block in counted] == [0, 1, 1, 2, 2]
    assert processes_of(base) == []
    _agrees_with_its_csv(service, id, tmp_path)


def test_what_is_scheduled_is_started_by_the_service_itself(service: Service) -> None:
    plan = {**PLAN, "name": "nightly", "blocks": 1}
    service.client.post("/schedules", {"every": "1 day", "campaign": plan})

    def scheduled() -> Document:
        schedule: Document = service.client.get("/schedules")["items"][0]
        return schedule

    wait_for(lambda: scheduled()["last"], "the schedule to start a campaign", within_s=60)
    id = scheduled()["last"]
    wait_for(lambda: service.client.get(f"/campaigns/{id}")["ended"], "it to end", within_s=120)
    assert service.client.get(f"/campaigns/{id}")["state"] == "completed"
    assert scheduled()["last"] == id
    service.client.delete("/schedules/nightly")


def _agrees_with_its_csv(service: Service, id: str, folder: Path) -> None:
    """What the report says can be computed from the exported values."""
    file = folder / "values.csv"
    code = vmtune(["compare", id, "--csv", str(file), "-q",
                   "--socket", str(service.client.socket_path)])  # fmt: skip
    assert code == 0
    by_block: dict[str, dict[str, float]] = {}
    with file.open() as lines:
        for row in csv.DictReader(lines):
            by_block.setdefault(row["block"], {})[row["arm"]] = float(row["total_time_ms"])
    assert set(by_block) == {"1", "2"}
    report = from_document(service.client.get("/comparisons", {"campaign": id}))
    primary = report.cells[0].primary
    assert (primary.size, primary.verdict) == (2, "insufficient data")
    assert primary.effect is not None
    one, two = (each["tuned"] / each["stock"] for each in by_block.values())
    # Whole milliseconds are dithered where runs differ by no more than some of them.
    assert primary.effect.estimate == pytest.approx((one * two) ** 0.5, rel=5e-3)

"""Log lines that lead to their record: what jobs and applications say, and of which."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from structlog.contextvars import get_contextvars, merge_contextvars
from structlog.testing import capture_logs

from tests.support.served.api import Api
from tests.support.simulated.fakes import VM
from vmtune.client.cli import COMMANDS
from vmtune.errors import CommandRefused
from vmtune.jobs.base import JobStatus
from vmtune.model.service_metrics import JOBS
from vmtune.services.instrumented_jobs import RECORD, instrumented
from vmtune.testing.fake.driver import FakeDriver
from vmtune.testing.inline_jobs import InlineEngine


async def test_a_phase_knows_whose_it_is_and_leaves_nothing_behind() -> None:
    seen: list[dict[str, Any]] = []

    async def phase(job_id: str) -> None:
        seen.append(get_contextvars())

    async def breaks(job_id: str) -> None:
        raise CommandRefused("no")

    jobs = InlineEngine()
    jobs.instrument(instrumented)
    jobs.register("evacuation", [("run", phase), ("settle", phase)])
    jobs.register("campaign", [("run", breaks), ("settle", phase)])
    await jobs.start()
    first, second = str(uuid4()), str(uuid4())
    await jobs.submit("evacuation", first)
    assert (await jobs.wait(first)).status is JobStatus.SUCCEEDED
    await jobs.submit("campaign", second)
    assert (await jobs.wait(second)).status is JobStatus.FAILED
    assert await jobs.state(first) == await jobs.wait(first)
    assert not await jobs.cancel(first)
    assert not await jobs.is_active(first)
    await jobs.stop()
    of_first = {"job_id": first, "evacuation_id": first}
    assert seen == [
        {**of_first, "phase": "evacuation: run"},
        {**of_first, "phase": "evacuation: settle"},
        {"job_id": second, "campaign_id": second, "phase": "campaign: settle"},
    ]
    assert get_contextvars() == {}


async def test_a_migrations_lines_name_its_record(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    start = FakeDriver.start_migration

    async def told(driver: FakeDriver, *arguments: Any) -> Any:
        seen.append(get_contextvars())
        return await start(driver, *arguments)

    monkeypatch.setattr(FakeDriver, "start_migration", told)
    with capture_logs(processors=[merge_contextvars]) as lines:
        started = await api.post("/migrations", {"vm": str(VM), "destination": "b"}, expect=202)
        await api.ended(started["id"])
    (during,) = seen
    wanted = {"migration_id": started["id"], "job_id": started["id"], "vm": str(VM), "host": "a"}
    assert wanted.items() <= during.items()
    (end,) = [line for line in lines if line["event"] == "migration ended"]
    assert {**wanted, "state": "completed", "destination": "b"}.items() <= end.items()


async def test_an_applications_lines_name_its_record_and_request(api: Api) -> None:
    await api.profile(downtime_limit_ms=700)
    with capture_logs(processors=[merge_contextvars]) as lines:
        answer = await api.send("POST", f"/vms/{VM}/applications", {"profile": "p"})
    (end,) = [line for line in lines if line["event"] == "application ended"]
    wanted = {
        "application_id": answer.json()["id"],
        "request_id": answer.headers["x-request-id"],
        "vm": str(VM),
        "host": "a",
        "state": "applied",
    }
    assert wanted.items() <= end.items()


def test_each_id_has_a_command_that_shows_its_record() -> None:
    """vmtune migration show, evacuation show, bench show, bench campaign show,
    tune show."""
    places = {"migration_id": "migration", "evacuation_id": "evacuation", "run_id": "bench",
              "campaign_id": "bench", "study_id": "tune"}  # fmt: skip
    assert set(RECORD.values()) == places.keys()
    assert set(RECORD) == set(JOBS)
    assert set(places.values()) | {"application"} <= set(COMMANDS)

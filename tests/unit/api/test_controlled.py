"""Steps and the reaper over the API: of profiles, in plans, and beside migrations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.served.api import Api, running_api
from tests.support.simulated.fakes import VM
from vmtune.testing.fake.qemu import DIRTIED_BYTES_PER_S, Fault, FaultKind

STEPS = [
    {"when": {"after_iterations": 0}, "then": {"set": {"downtime_limit_ms": 900}}},
    {"when": {"stalled_s": 300, "shrink_percent": 5}, "then": {"do": "abort"}},
]
TEXTS = ["after 0 iterations: downtime_limit_ms=900ms", "stalled 300s, less than 5%: abort"]


@pytest.fixture(autouse=True)
def _waits_for_the_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes on a busy machine."""
    monkeypatch.setattr("vmtune.engine.reaper.loop.FIRST_ROUND_WITHIN_S", 20.0)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(tmp_path, ring_entries=65536) as made:
        yield made


async def profile(api: Api, steps: list[dict[str, Any]], **values: Any) -> Any:
    return await api.post("/profiles", {"name": "p", "values": values, "steps": steps})


async def begin(api: Api) -> str:
    """A migration that does not converge, and is active."""
    api.source.parameters["max-bandwidth"] = DIRTIED_BYTES_PER_S
    body = {"vm": str(VM), "destination": "b", "profile": "p"}
    made = await api.post("/migrations", body, expect=202)
    id: str = made["id"]
    await until(api, id, lambda record: record["state"] == "active")
    return id


async def until(api: Api, id: str, holds: Callable[[Any], object]) -> None:
    """Until something holds of the migration's record."""
    async with asyncio.timeout(60):
        while not holds(await api.get(f"/migrations/{id}")):  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.01)


async def finish(api: Api, id: str) -> Any:
    api.source.parameters["max-bandwidth"] = 0
    return await api.ended(id)


async def test_a_profile_has_its_steps_in_each_revision(api: Api) -> None:
    made = await profile(api, STEPS)
    assert (made["step_texts"], made["steps"][1]) == (TEXTS, STEPS[1])
    kept = await api.ask("PATCH", "/profiles/p", {"values": {"multifd": True}}, if_match='"1"')
    assert (kept["revision"], kept["step_texts"]) == (2, TEXTS)
    fewer = await api.ask("PATCH", "/profiles/p", {"steps": STEPS[:1]}, if_match='"2"')
    assert (fewer["revision"], fewer["step_texts"], fewer["values"]) == (
        3, TEXTS[:1], {"multifd": True}
    )  # fmt: skip
    none = await api.ask("PUT", "/profiles/p", {"values": {}}, if_match='"3"')
    assert (none["revision"], none["steps"]) == (4, [])
    assert (await api.get("/profiles/p/revisions/1"))["step_texts"] == TEXTS
    back = await api.ask("POST", "/profiles/p/revisions/1/restore", {}, if_match='"4"')
    assert back["step_texts"] == TEXTS
    again = await api.ask(
        "PUT", "/profiles/p", {"values": {}, "steps": back["steps"]}, if_match='"5"'
    )
    assert again["revision"] == 5


@pytest.mark.parametrize(
    ("steps", "field", "code"),
    [
        ([{"when": {"after_s": 0}, "then": {"do": "abort"}}], "steps.0.when.after_s",
         "invalid_value"),
        ([{"when": {"after_s": 9}, "then": {"do": "postcopy"}}], "steps.0.then.do",
         "needs_postcopy"),
        ([{"text": "after 4 iterations: abort"}], "steps.0.text", "unknown_field"),
        (["after 4 iterations: abort"], "steps.0", "invalid_value"),
        (STEPS * 20, "steps", "invalid_input"),
    ],
)  # fmt: skip
async def test_steps_are_refused_by_field(api: Api, steps: Any, field: str, code: str) -> None:
    body = {"name": "p", "values": {}, "steps": steps}
    for path in ("/profiles", "/profiles/check"):
        given = body if path == "/profiles" else {k: v for k, v in body.items() if k != "name"}
        response = await api.send("POST", path, given)
        assert response.status_code == 422
        assert (field, code) in [(e["field"], e["code"]) for e in response.json()["errors"]]


async def test_values_and_steps_are_checked_together(api: Api) -> None:
    body = {"values": {"postcopy": "on"}, "steps": STEPS[:1]}
    checked = await api.post("/profiles/check", body, expect=200)
    assert (checked["values"], checked["step_texts"]) == ({"postcopy": True}, TEXTS[:1])


async def test_a_plan_shows_steps_and_what_stands_against_the_reaper(api: Api) -> None:
    api.source.ring.entries = 0
    await profile(api, STEPS[:1], reaper_policy="predict")
    body = {"profile": "p", "destination": "b"}
    plan = await api.post(f"/vms/{VM}/plan", body, expect=200)
    assert plan["step_texts"] == TEXTS[:1]
    assert plan["blockers"] == ["reaper_needs_ring"]
    assert plan["items"][0]["route"] == "control"


async def test_a_migration_tells_of_its_reaper_round_by_round(api: Api) -> None:
    await profile(api, [], reaper_policy="predict", reaper_max_interval_ms=60)
    id = await begin(api)
    await until(api, id, lambda _: api.source.ring.measurements >= 5)
    done = await finish(api, id)
    reaper = done["reaper"]
    assert (reaper["end"], reaper["throughout"], reaper["policy"]) == (
        "migration ended", True, "predict"
    )  # fmt: skip
    assert reaper["ring_full_exits"] is None
    assert {o["status"] for o in done["outcomes"]} == {"effective"}
    rounds: list[Any] = []
    path = f"/migrations/{id}/rounds?limit=2"
    while True:
        page = await api.get(path)
        rounds += page["items"]
        if page["next"] is None:
            break
        path = f"/migrations/{id}/rounds?limit=2&after={page['next']}"
    assert len(rounds) == reaper["round_count"] >= 5
    assert rounds[0]["at_ms"] <= 0 < rounds[-1]["at_ms"]
    assert rounds[-1]["fills"][0] > 0
    assert await api.refused("GET", f"/migrations/{uuid4()}/rounds", status=404)
    other = await api.refused("GET", f"/migrations/{id}/samples?after={page_cursor(path)}",
                              status=422)  # fmt: skip
    assert other[0][0] == "after"


def page_cursor(path: str) -> str:
    return path.partition("after=")[2]


async def test_a_migration_tells_of_its_steps(api: Api) -> None:
    await profile(api, STEPS)
    id = await begin(api)
    await until(api, id, lambda record: record["step_records"])
    done = await finish(api, id)
    assert done["step_texts"] == TEXTS
    (taken,) = done["step_records"]
    assert (taken["number"], taken["effect"], taken["action"]) == (
        0, "done", "set downtime_limit_ms to 900 ms"
    )  # fmt: skip


def possible(record: Any) -> set[str]:
    return {each["name"] for each in record["controls"] if not each["why_not"]}


async def test_a_user_pauses_the_guest_until_the_end(api: Api) -> None:
    await profile(api, [], downtime_limit_ms=1)
    id = await begin(api)
    path = f"/migrations/{id}"
    assert possible(await api.get(path)) == {"downtime_limit", "bandwidth", "pause"}
    changed = await api.ask("PATCH", path, {"do": "pause"})
    (taken,) = changed["step_records"]
    assert (taken["action"], taken["reason"], taken["effect"]) == (
        "pause the guest", "requested by a user", "done"
    )  # fmt: skip
    assert possible(changed) == {"downtime_limit", "bandwidth"}
    assert await api.refused("PATCH", path, {"do": "pause"}, status=409) == [("do", "not_possible")]
    done = await finish(api, id)
    assert (done["state"], done["downtime_exceeded"], done["controls"]) == ("completed", False, [])
    assert not done["problems"], "the guest was resumed"


async def test_a_user_switches_to_post_copy_where_it_was_started_for_it(api: Api) -> None:
    await profile(api, [], postcopy=True)
    id = await begin(api)
    assert "postcopy" in possible(await api.get(f"/migrations/{id}"))
    await api.ask("PATCH", f"/migrations/{id}", {"do": "postcopy"})
    done = await finish(api, id)
    assert done["state"] == "completed"
    assert [each["action"] for each in done["step_records"]] == ["switch to post-copy"]


async def test_what_a_migration_cannot_do_is_refused_with_the_reason(api: Api) -> None:
    await profile(api, [])
    id = await begin(api)
    path = f"/migrations/{id}"
    response = await api.send("PATCH", path, {"do": "postcopy"})
    assert response.status_code == 409
    assert "started without postcopy" in response.text
    both = {"do": "pause", "values": {"downtime_limit_ms": 5}}
    assert await api.refused("PATCH", path, both, status=422) == [("do", "invalid_input")]
    assert (await api.send("PATCH", path, {"do": "abort"})).status_code == 422
    assert await api.refused("PATCH", path, {}, status=422) == [("values", "invalid_input")]
    assert (await api.get(path))["step_records"] == []
    await finish(api, id)


def limits(record: Any) -> dict[str, int | None]:
    return {each["name"]: each["present_ms"] for each in record["controls"]}


async def test_a_user_changes_a_running_migration(api: Api) -> None:
    await profile(api, [], downtime_limit_ms=400)
    id = await begin(api)
    path = f"/migrations/{id}"
    before = limits(await api.get(path))
    assert (before.pop("downtime_limit"), set(before.values())) == (400, {None})
    changed = await api.ask("PATCH", path, {"values": {"downtime_limit_ms": "1s"}})
    assert api.source.parameters["downtime-limit"] == 1000
    assert limits(changed)["downtime_limit"] == 1000
    (taken,) = changed["step_records"]
    assert (taken["number"], taken["reason"]) == (None, "requested by a user")
    refused = await api.refused("PATCH", path, {"values": {"multifd": True}}, status=422)
    assert refused == [("values.multifd", "not_settable")]
    api.source.faults.append(Fault(FaultKind.REFUSE, "migrate-set-parameters", text="not now"))
    response = await api.send("PATCH", path, {"values": {"downtime_limit_ms": 5}})
    assert response.status_code >= 400
    assert "not now" in response.text
    await finish(api, id)
    late = await api.refused("PATCH", path, {"values": {"downtime_limit_ms": 5}}, status=409)
    assert late == [("migration", "too_late")]

"""Studies over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.benchmarks.bench_runs import fake_tools
from tests.support.benchmarks.studies import TunedRunner, study_json
from tests.support.served.api import Api, running_api


@pytest.fixture
def runner() -> TunedRunner:
    return TunedRunner()


@pytest.fixture
async def bench(tmp_path: Path, runner: TunedRunner) -> AsyncIterator[Api]:
    async with running_api(tmp_path, hosts=(), bench_tools=fake_tools(runner)) as made:
        yield made


async def ended(api: Api, id: str) -> Any:
    async with asyncio.timeout(60):
        await api.jobs.wait(id)
    return await api.get(f"/studies/{id}")


async def test_a_study_from_order_to_draft(bench: Api) -> None:
    response = await bench.send("POST", "/studies", study_json())
    assert response.status_code == 202, response.text
    ordered = response.json()
    assert response.headers["location"] == f"/api/v1/studies/{ordered['id']}"
    assert (ordered["trials"], ordered["result"], ordered["budget_runs"]) == (0, None, 44)
    done = await ended(bench, ordered["id"])
    assert (done["state"], done["ended"], done["breaches"]) == ("completed", True, {})
    result = done["result"]
    assert result["finding"] == "better"
    assert result["texts"]["multifd"] == "on"
    assert (await bench.get("/studies/mine"))["id"] == ordered["id"]
    profile = await bench.get(f"/profiles/{result['draft']['profile']}")
    assert profile["values"] == result["settings"]
    page = await bench.get(f"/studies/{ordered['id']}/trials?limit=3")
    rest = await bench.get(f"/studies/mine/trials?limit=100&after={page['next']}")
    trials = page["items"] + rest["items"]
    assert [one["number"] for one in trials] == list(range(done["trials"]))
    assert trials[0]["origin"] == "default"
    assert trials[0]["medians"]["total_time_ms"] == pytest.approx(8000, rel=0.03)
    assert [one["number"] for one in trials if one["finalist"]] == done["finalists"]
    runs = await bench.get(f"/runs?study={ordered['id']}&limit=100")
    told = {run["run"] for one in trials for run in one["runs"]}
    assert {run["id"] for run in runs["items"]} == told
    assert (await bench.get(f"/campaigns/{done['campaign']}"))["name"] == "mine-confirmed"
    analysis = await bench.get("/studies/mine/analysis")
    shares = {one["tunable"]: one["share"] for one in analysis["importance"]}
    assert shares.keys() == ({"multifd", "multifd_channels"} if done["trials"] >= 12 else set())
    assert [point["trial"] for point in analysis["points"]] == list(range(done["trials"]))
    (best,) = [point["trial"] for point in analysis["points"] if point["front"]]
    assert best != 0
    listed = await bench.get("/studies?name=mine&state=completed")
    assert [each["id"] for each in listed["items"]] == [ordered["id"]]
    assert (await bench.get("/studies?state=searching"))["items"] == []
    assert (await bench.get("/studies?search=IN"))["items"] == listed["items"]
    assert (await bench.get("/studies?search=yours"))["items"] == []


async def test_the_packs_of_the_settings_can_be_varied(tmp_path: Path) -> None:
    order = study_json(space={"qemu_pool_hard_limit_count": [0, 512]})
    tools = fake_tools(TunedRunner())
    options = {"packs": ("qemu-patched",)}
    async with running_api(tmp_path, hosts=(), bench_tools=tools, options=options) as api:
        planned = await api.ask("POST", "/studies/plan", order)
        assert planned["space"] == ["qemu_pool_hard_limit_count"]
    async with running_api(tmp_path, hosts=(), bench_tools=tools) as api:
        response = await api.send("POST", "/studies/plan", order)
        assert response.status_code == 422
        assert response.json()["errors"][0]["code"] == "unknown_tunable"


async def test_a_study_is_paused_resumed_and_cancelled(bench: Api, runner: TunedRunner) -> None:
    runner.held = True
    id = (await bench.ask("POST", "/studies", study_json(), expect=202))["id"]
    await runner.begun()
    assert (await bench.ask("POST", f"/studies/{id}/pause"))["state"] == "paused"
    assert (await bench.ask("POST", "/studies/mine/resume"))["state"] == "queued"
    await bench.ask("DELETE", f"/studies/{id}", expect=202)
    assert (await ended(bench, id))["state"] == "cancelled"
    await bench.ask("DELETE", f"/studies/{id}", expect=409)
    await bench.ask("POST", f"/studies/{id}/pause", expect=409)
    for method, path in (
        ("GET", ""),
        ("GET", "/trials"),
        ("GET", "/analysis"),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
    ):
        await bench.ask(method, f"/studies/none{path}", expect=404)


async def test_a_plan_orders_nothing(bench: Api, runner: TunedRunner) -> None:
    told = await bench.ask("POST", "/studies/plan", study_json(seed=None, space="auto"))
    assert "multifd_channels" in told["space"]
    assert 0 <= told["study"]["seed"] < 2**53  # what a browser can read exactly
    assert told["confirm_runs"] == 12
    assert (await bench.get("/studies"))["items"] == []
    assert runner.orders == []


async def test_what_is_wrong_is_named(bench: Api) -> None:
    wrong = study_json(objective="minimise downtime", extra=1)
    told = await bench.ask("POST", "/studies", wrong, expect=422)
    assert {each["field"] for each in told["errors"]} >= {"extra"}
    told = await bench.ask("POST", "/studies", study_json(budget={"runs": 4}), expect=422)
    assert [each["field"] for each in told["errors"]] == ["budget.runs"]
    assert all(each["remedy"] for each in told["errors"])


async def test_it_takes_the_scopes_of_benchmarks_and_of_profiles(tmp_path: Path) -> None:
    async with running_api(
        tmp_path, hosts=(), base_url="http://localhost:8470", bench_tools=fake_tools(TunedRunner())
    ) as api:
        for scopes, status in ((["bench"], 403), (["profile"], 403), (["bench", "profile"], 202)):
            made = await api.post("/tokens", {"name": "-".join(scopes), "scopes": scopes})
            bearer = {"authorization": f"Bearer {made['token']}"}
            response = await api.send("POST", "/studies", study_json(), **bearer)
            assert response.status_code == status, response.text

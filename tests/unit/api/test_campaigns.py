"""Campaigns over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.benchmarks.bench_runs import FakeRunner, fake_tools
from tests.support.benchmarks.campaigns import campaign_json
from tests.support.served.api import Api, running_api


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
async def bench(tmp_path: Path, runner: FakeRunner) -> AsyncIterator[Api]:
    async with running_api(tmp_path, hosts=(), bench_tools=fake_tools(runner)) as made:
        yield made


async def ended(api: Api, id: str) -> Any:
    async with asyncio.timeout(60):
        await api.jobs.wait(id)
    return await api.get(f"/campaigns/{id}")


async def test_a_campaign_from_order_to_comparison(bench: Api) -> None:
    response = await bench.send("POST", "/campaigns", campaign_json(blocks=6))
    assert response.status_code == 202
    ordered = response.json()
    assert response.headers["location"] == f"/api/v1/campaigns/{ordered['id']}"
    assert (ordered["state"], ordered["total"], ordered["seed"]) == ("running", 13, 7)
    assert ordered["forecast"]["runs"] == 13
    assert ordered["forecast"]["detectable_percent"] > 5
    done = await ended(bench, ordered["id"])
    assert (done["state"], done["done"], done["remaining_s"]) == ("completed", 13, None)
    assert done["runs"] == {"completed": 13}
    assert done["campaign"]["arms"][1]["values"] == {"multifd": True}
    assert (await bench.get("/campaigns/mine"))["id"] == ordered["id"]
    report = await bench.get(f"/comparisons?campaign={ordered['id']}")
    assert report["cells"][0]["comparisons"][0]["size"] == 6
    listed = await bench.get("/campaigns?name=mine&state=completed")
    assert [each["id"] for each in listed["items"]] == [ordered["id"]]
    assert (await bench.get("/campaigns?state=running"))["items"] == []
    assert (await bench.get("/campaigns?search=IN"))["items"] == listed["items"]
    assert (await bench.get("/campaigns?search=yours"))["items"] == []
    runs = await bench.get(f"/runs?campaign={ordered['id']}")
    assert runs["items"][0]["slot"]["block"] == 6
    page = await bench.get(f"/campaigns/{ordered['id']}/plan?limit=5")
    rest = await bench.get(f"/campaigns/mine/plan?after={page['next']}")
    plan = page["items"] + rest["items"]
    assert [each["number"] for each in plan] == list(range(1, 14))
    assert [each["block"] for each in plan[:4]] == [0, 1, 1, 2]
    assert {(each["state"], each["attempts"]) for each in plan} == {("completed", 1)}
    assert {each["run"] for each in plan} == {each["id"] for each in runs["items"]}


async def test_a_campaign_is_paused_resumed_and_cancelled(bench: Api, runner: FakeRunner) -> None:
    runner.held = True
    id = (await bench.ask("POST", "/campaigns", campaign_json(), expect=202))["id"]
    await runner.begun()
    first, *rest = (await bench.get(f"/campaigns/{id}/plan"))["items"]
    assert (first["state"], first["attempts"], first["scenario"]) == ("running", 1, "mine/small")
    assert {(each["state"], each["run"], each["attempts"]) for each in rest} == {(None, None, 0)}
    assert (await bench.ask("POST", f"/campaigns/{id}/pause"))["state"] == "paused"
    assert (await bench.ask("POST", "/campaigns/mine/resume"))["state"] == "running"
    await bench.ask("DELETE", f"/campaigns/{id}", expect=202)
    assert (await ended(bench, id))["state"] == "cancelled"
    await bench.ask("DELETE", f"/campaigns/{id}", expect=409)
    await bench.ask("POST", f"/campaigns/{id}/pause", expect=409)
    for method, path in (
        ("GET", ""),
        ("GET", "/plan"),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
    ):
        await bench.ask(method, f"/campaigns/none{path}", expect=404)


async def test_a_forecast_orders_nothing(bench: Api, runner: FakeRunner) -> None:
    told = await bench.ask("POST", "/campaigns/forecast", campaign_json(blocks=5, seed=None))
    assert told["forecast"]["detectable_percent"] is None
    assert told["forecast"]["noise_reason"]
    assert 0 <= told["campaign"]["seed"] < 2**53  # what a browser can read exactly
    assert (await bench.get("/campaigns"))["items"] == []
    assert runner.orders == []


async def test_what_is_wrong_is_named(bench: Api) -> None:
    wrong = campaign_json(blocks=0, margin_percent=0, extra=1)
    told = await bench.ask("POST", "/campaigns", wrong, expect=422)
    assert {each["field"] for each in told["errors"]} >= {"extra"}
    told = await bench.ask("POST", "/campaigns", campaign_json(margin_percent=0), expect=422)
    assert [each["field"] for each in told["errors"]] == ["margin_percent"]
    await bench.ask("POST", "/campaigns", campaign_json(published={"reference": "x"}), expect=404)

"""Comparisons and histories over HTTP."""

from __future__ import annotations

import csv
import io
import json

from tests.support.benchmarks.campaigns import campaign_json
from tests.support.benchmarks.measured import noisy, put
from tests.support.served.api import Api
from vmtune.api.schemas.bench.comparisons import ComparisonView
from vmtune.bench.report.report import from_document
from vmtune.storage import Store

A, B = "profile=stock", "profile=tuned"


def fill(api: Api, size: int = 8) -> None:
    with Store.open(api.container.settings.database_url) as store:
        put(store, "stock", noisy(1000, size, 1), profile="stock")
        put(store, "tuned", noisy(500, size, 2), profile="tuned")


async def test_a_comparison_over_http(api: Api) -> None:
    fill(api)
    document = await api.get(f"/comparisons?a={A}&b={B}")
    ComparisonView.model_validate_json(json.dumps(document), strict=True)
    report = from_document(document)
    assert report.cells[0].primary.verdict == "better"
    page = await api.send("GET", f"/comparisons/report?a={A}&b={B}")
    assert page.headers["content-type"].startswith("text/html")
    assert "<svg" in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    values = await api.send("GET", f"/comparisons/report?a={A}&b={B}&format=csv")
    assert len(list(csv.DictReader(io.StringIO(values.text)))) == 16
    refused = await api.ask("GET", "/comparisons?a=stock", expect=422)
    assert refused["errors"][0]["field"] == "b"
    await api.ask("GET", "/comparisons?campaign=none", expect=404)


async def test_a_history_over_http(api: Api) -> None:
    fill(api, 20)
    history = await api.get("/history?scenario=q/busy&metric=total_time_ms")
    assert [len(entry["points"]) for entry in history["items"]] == [20, 20]
    assert history["items"][0]["changes"] == []
    assert history["unit"] == "ms"
    first = await api.get("/history?scenario=q/busy&limit=1")
    second = await api.get(f"/history?scenario=q/busy&limit=1&after={first['next']}")
    assert [*first["items"], *second["items"]] == history["items"]
    assert second["next"] is None
    await api.ask("GET", "/history?scenario=q/busy&after=x", expect=422)
    await api.ask("GET", "/history?scenario=none", expect=404)


async def test_a_history_is_exported_as_csv(api: Api) -> None:
    fill(api, 5)
    entry = (await api.get("/history?scenario=q/busy"))["items"][1]
    answer = await api.send("GET", f"/history/export?scenario=q/busy&setup={entry['id']}")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [float(row["total_time_ms"]) for row in rows] == [p["value"] for p in entry["points"]]
    await api.ask("GET", "/history/export?scenario=q/busy&setup=ffffffff", expect=404)


async def test_changes_are_found_and_triaged_over_http(api: Api) -> None:
    with Store.open(api.container.settings.database_url) as store:
        put(store, "old", noisy(1000, 20, 1))
        put(store, "new", noisy(1500, 20, 2), after=60)
    (found,) = (await api.ask("POST", "/changes/look", {}))["items"]
    assert (found["worse"], found["triage"]) == (True, "open")
    order = {"triage": "to_fix", "note": "bug 7"}
    kept = await api.ask("PUT", f"/changes/{found['id']}/triage", order)
    assert (kept["triage"], kept["note"]) == ("to_fix", "bug 7")
    assert kept["triaged_by"]
    (entry,) = (await api.get("/history?scenario=q/busy"))["items"]
    assert entry["changes"][0]["found"]["note"] == "bug 7"
    assert (await api.get("/changes?triage=open"))["items"] == []
    assert len((await api.get("/changes?triage=to_fix"))["items"]) == 1
    none = f"/changes/{'0' * 8}-0000-4000-8000-{'0' * 12}/triage"
    await api.ask("PUT", none, order, expect=404)
    await api.ask("PUT", f"/changes/{found['id']}/triage", {"triage": "no"}, expect=422)


async def test_campaigns_are_scheduled_over_http(api: Api) -> None:
    order = {"every": "1 day", "campaign": campaign_json(name="nightly", blocks=1)}
    made = await api.ask("POST", "/schedules", order, expect=201)
    assert (made["name"], made["every"], made["waits"]) == ("nightly", "1 day", "")
    again = await api.ask("POST", "/schedules", order, expect=409)
    assert "already" in again["detail"]
    wrong = await api.ask("POST", "/schedules", {**order, "every": "soon"}, expect=422)
    assert wrong["errors"][0]["field"] == "every"
    assert [each["name"] for each in (await api.get("/schedules"))["items"]] == ["nightly"]
    await api.ask("DELETE", "/schedules/nightly", expect=204)
    await api.ask("DELETE", "/schedules/nightly", expect=404)

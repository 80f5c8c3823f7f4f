"""Comparisons and histories over HTTP."""

from __future__ import annotations

import csv
import io
import json

from tests.support.api import Api
from tests.support.measured import noisy, put
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
    assert report.cells[0].comparisons[0].verdict == "better"
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

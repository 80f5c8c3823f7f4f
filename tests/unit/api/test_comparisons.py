"""Comparisons and histories over HTTP, and as the command shows them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.support.api import Api
from tests.support.measured import noisy, put
from tests.unit.client.conftest import Vmtune, real, vmtune  # noqa: F401 - fixtures
from vmtune.bench.report import from_document
from vmtune.store import Store

A, B = "profile=stock", "profile=tuned"


def fill(api: Api, size: int = 8) -> None:
    with Store.open(api.container.settings.database_url) as store:
        put(store, "stock", noisy(1000, size, 1), profile="stock")
        put(store, "tuned", noisy(500, size, 2), profile="tuned")


async def test_a_comparison_over_http(api: Api) -> None:
    fill(api)
    document = await api.get(f"/comparisons?a={A}&b={B}")
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
    assert [len(strand["points"]) for strand in history["items"]] == [20, 20]
    assert history["items"][0]["changes"] == []
    assert history["unit"] == "ms"
    await api.ask("GET", "/history?scenario=none", expect=404)


def test_the_command_prints_and_writes(
    real: Api,
    vmtune: Vmtune,
    tmp_path: Path,  # noqa: F811 - fixtures
) -> None:
    fill(real)
    table = vmtune("compare", A, B)
    assert table.code == 0, table.err
    assert "Total time: better: " in table.out
    assert "B = profile=tuned against A = profile=stock, 8 runs of A and 8 of B" in table.out
    assert from_document(vmtune("compare", A, B, "--json").document).title == f"{B} against {A}"
    assert "| Run |" in vmtune("compare", A, B, "--markdown").out
    page, values = tmp_path / "report.html", tmp_path / "values.csv"
    wrote = vmtune("compare", A, B, "--html", str(page), "--csv", str(values))
    assert wrote.code == 0
    assert "<svg" in page.read_text()
    assert len(values.read_text().splitlines()) == 17
    wide = vmtune("compare", A, B, "--margin", "95").out
    assert "inconclusive" in wide
    wrong = vmtune("compare", A, "tuned")
    assert wrong.code == 1
    assert "remedy: name the campaign too" in wrong.err
    assert vmtune("compare", "x", "--campaign", "y").code == 1


def test_the_command_shows_a_history(real: Api, vmtune: Vmtune) -> None:  # noqa: F811 - fixtures
    with Store.open(real.container.settings.database_url) as store:
        put(store, "a", noisy(1000, 15, 1))
        put(store, "b", noisy(2000, 15, 2), after=60)
    shown = vmtune("bench", "history", "q/busy")
    assert shown.code == 0, shown.err
    assert "30 runs" in shown.out
    assert "worse" in shown.out
    assert json.loads(vmtune("bench", "history", "q/busy", "--json").out)["items"]
    few = vmtune("bench", "history", "q/busy", "--metric", "nothing")
    assert few.code == 1
    assert "vmtune bench metrics" in few.err


@pytest.fixture(autouse=True)
def _no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

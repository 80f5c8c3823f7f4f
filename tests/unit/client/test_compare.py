"""``vmtune compare`` and ``vmtune bench history`` against the real application."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.benchmarks.measured import noisy, put
from tests.support.served.api import Api
from tests.unit.client.conftest import Vmtune
from vmtune.bench.report.report import from_document
from vmtune.storage import Store

A, B = "profile=stock", "profile=tuned"


def fill(api: Api, size: int = 8) -> None:
    with Store.open(api.container.settings.database_url) as store:
        put(store, "stock", noisy(1000, size, 1), profile="stock")
        put(store, "tuned", noisy(500, size, 2), profile="tuned")


def test_the_command_prints_and_writes(
    real: Api,
    vmtune: Vmtune,
    tmp_path: Path,
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


def test_the_command_shows_a_history(real: Api, vmtune: Vmtune) -> None:
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

"""``vmtune bench export --dataset``: recorded migrations, readable with other programs."""

from __future__ import annotations

import builtins
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from tests.support.examples import api_documents as docs
from tests.support.served.api import Api
from tests.support.served.stub_service import StubService, page
from tests.unit.client.conftest import Vmtune

ONE, OTHER = (f"aaaaaaaa-0000-4000-8000-00000000000{n}" for n in (1, 2))
SAMPLE = {"at_ms": 100, "status": "active", "remaining_bytes": 1 << 20}
FORECAST = {"basis": "before", "total_ms": {"low": 1.0, "likely": 2.0, "high": 3.0}, "inputs": {}}


@pytest.fixture
def migrations(service: StubService) -> None:
    ended = docs.migration("completed", id=ONE, failure="")
    failed = docs.migration("failed", id=OTHER, failure="rack2 is on fire", totals=None)
    queued = docs.migration("queued", id=docs.VM)
    service.on("GET", "/migrations", page(ended, failed, queued))
    for id, forecasts in ((ONE, [FORECAST]), (OTHER, [])):
        service.on("GET", f"/migrations/{id}/forecasts", {"items": forecasts})
        service.on("GET", f"/migrations/{id}/samples", page(SAMPLE))


@pytest.mark.usefixtures("migrations")
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_a_row_for_each_that_has_ended(
    service: StubService, vmtune: Vmtune, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"mine{suffix}"
    ran = vmtune("bench", "export", "--dataset", str(file), "--json", "--host", "rack1")
    assert ran.document == {"file": str(file), "migrations": 2}, ran.err
    if suffix == ".parquet":
        rows: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
    else:
        content = file.read_bytes()
        text = gzip.decompress(content) if suffix.endswith(".gz") else content
        rows = [json.loads(line) for line in text.splitlines()]
    assert [row["id"] for row in rows] == [ONE, OTHER]
    assert rows[0]["forecasts"][0]["total_ms"] == FORECAST["total_ms"]
    assert rows[1]["totals"] is None
    assert rows[1]["samples"] == [SAMPLE]
    assert service.asked[0].query["host"] == ["rack1"]


@pytest.mark.usefixtures("migrations")
def test_names_can_be_left_out(vmtune: Vmtune, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    assert vmtune("bench", "export", "--dataset", "--anonymous", str(file)).code == 0
    text = file.read_text()
    for name in (ONE, "rack", "db1", docs.VM, "fast"):
        assert name not in text, name
    rows = [json.loads(line) for line in text.splitlines()]
    assert [(row["vm"], row["source"], row["destination"]) for row in rows] == [
        ("vm1", "host1", "host2")
    ] * 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--dataset",), "takes a FILE alone"),
        (("--dataset", "a.jsonl", "b.jsonl"), "takes a FILE alone"),
        (("--dataset", "a.jsonl", "--format", "json"), "takes a FILE alone"),
        (("--dataset", "a.xlsx"), "not said by its suffix"),
        (("--dataset", "nowhere/a.jsonl"), "cannot be written"),
        (("a.json",), "a RUN and a FILE are needed"),
        ((ONE, "a.json", "--anonymous"), "of a --dataset"),
    ],
)
@pytest.mark.usefixtures("migrations")
def test_what_cannot_be_written_is_said(
    vmtune: Vmtune,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = vmtune("bench", "export", *arguments)
    assert ran.code == 1
    assert said in ran.err
    assert not [each for each in tmp_path.iterdir() if each.suffix != ".sock"]


@pytest.mark.usefixtures("migrations")
def test_without_the_extra_it_names_the_other_form(
    vmtune: Vmtune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    ran = vmtune("bench", "export", "--dataset", str(tmp_path / "mine.parquet"))
    assert ran.code == 1
    assert "end the file with .jsonl" in ran.err
    assert not [each for each in tmp_path.iterdir() if each.suffix != ".sock"]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_service_without_migrations_gives_an_empty_one(
    real: Api, vmtune: Vmtune, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"none{suffix}"
    ran = vmtune("bench", "export", "--dataset", str(file))
    assert (ran.code, file.exists()) == (0, True), ran.err
    assert "wrote 0 migrations" in ran.out

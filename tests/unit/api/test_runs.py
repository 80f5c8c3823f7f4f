"""Benchmark runs over HTTP: ordered, followed, cancelled, looked at, exported, imported."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.benchmarks.bench_runs import FakeRunner, fake_tools, small
from tests.support.benchmarks.records import make_record
from tests.support.served.api import Api, admin_token, running_api
from tests.support.simulated.fakes import VM
from vmtune.bench.files import exchange, parquet
from vmtune.bench.model.metrics.table import METRICS
from vmtune.bench.model.runs.series import Series, apart
from vmtune.documents.dataclass_json import to_json

REPORTS = Path(__file__).parents[2] / "data/guestperf"
RECORD = make_record(20, 1)


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner(record=lambda _: RECORD)


@pytest.fixture
async def bench(tmp_path: Path, runner: FakeRunner) -> AsyncIterator[Api]:
    async with running_api(tmp_path, hosts=(), bench_tools=fake_tools(runner)) as made:
        yield made


def _text(path: Path) -> str:
    return path.read_text()


async def do(api: Api, **body: Any) -> Any:
    ordered = await api.post("/runs", {"scenario": small(), **body}, expect=202)
    return await api.run_ended(ordered["id"])


async def test_a_run_from_order_to_record(bench: Api) -> None:
    await bench.profile("fast", multifd=True, multifd_channels=4)
    body = {
        "scenario": small(),
        "changes": {"warmup_s": 2, "name": "mine/changed"},
        "profile": "fast",
        "values": {"multifd_channels": "8"},
        "kvm": False,
        "overrides": ["optmem_too_low"],
    }
    response = await bench.send("POST", "/runs", body)
    assert response.status_code == 202
    ordered = response.json()
    assert response.headers["location"] == f"/api/v1/runs/{ordered['id']}"
    assert (ordered["state"], ordered["ended"], ordered["ahead"]) == ("queued", False, 0)
    done = await bench.run_ended(ordered["id"])
    assert (done["state"], done["ended"], done["counts"]) == ("completed", True, True)
    assert done["scenario"] == "mine/changed"
    assert done["values"] == {"multifd": True, "multifd_channels": 8}
    assert done["texts"] == {"multifd": "on", "multifd_channels": "8"}
    assert (done["profile"], done["revision"], done["qemu"]) == ("fast", 1, "system")
    assert done["setup"]["warmup_s"] == 2
    assert done["options"] == {"kvm": False, "overrides": ["optmem_too_low"]}
    assert done["environment"]["accelerator"] == "tcg"
    assert done["conditions"]["load_1min"] >= 0
    assert done["slot"] is None
    head, series = apart(RECORD)
    assert done["lengths"] == {name: len(rows) for name, rows in series.items()}
    record = done["record"]
    assert record["totals"] == to_json(head.totals)
    assert record["steps"] == to_json(head.steps)
    assert record["reaper"]["policy"] == "predict"
    assert [o["status"] for o in record["outcomes"]] == ["effective"]
    assert list(done["metrics"]) == [name for name in METRICS if name in done["metrics"]]
    found = await bench.get(f"/environments/{done['fingerprint']}")
    assert found["environment"] == done["environment"]


async def test_series_are_paged(bench: Api) -> None:
    id = (await do(bench))["id"]
    _, series = apart(RECORD)
    for name in Series:
        rows: list[Any] = []
        after = ""
        while True:
            page = await bench.get(f"/runs/{id}/{name}?limit=7{after}")
            rows += page["items"]
            if page["next"] is None:
                break
            assert len(page["items"]) == 7
            after = f"&after={page['next']}"
        assert rows == json.loads(json.dumps(to_json(series[name])))


async def test_runs_are_listed_and_filtered(bench: Api, runner: FakeRunner) -> None:
    await bench.profile("fast", multifd=True)
    first = await do(bench, scenario=small(name="mine/a"), profile="fast")
    second = await do(bench, scenario=small(name="mine/b"))
    await runner.begun()  # those before: the next is waited for
    runner.held = True
    ordered = {"scenario": small(name="other/c")}
    waiting = [await bench.post("/runs", ordered, expect=202)]
    await runner.begun()
    waiting += [await bench.post("/runs", ordered, expect=202) for _ in "yz"]
    ids = [w["id"] for w in reversed(waiting)] + [second["id"], first["id"]]
    for query, expected in (
        ("", ids),
        ("scenario=mine/a", [ids[4]]),
        ("family=mine", ids[3:]),
        ("profile=fast", [ids[4]]),
        ("state=queued&state=running", ids[:3]),
        (f"fingerprint={first['fingerprint']}&state=completed", ids[3:]),
        (f"host={first['host']}", ids),
        ("host=elsewhere", []),
        (f"campaign={first['id']}", []),
        ("arm=x", []),
        ("search=INE/", ids[3:]),
        ("search=ast", [ids[4]]),
        (f"search={ids[3][:13]}", [ids[3]]),
        ("search=%25", []),
        (f"since={quote(second['created_at'])}", ids[:4]),
    ):
        page = await bench.get(f"/runs?{query}")
        assert [run["id"] for run in page["items"]] == expected, query
    first_of = await bench.get("/measured-scenarios?limit=2")
    measured = first_of["items"]
    measured += (await bench.get(f"/measured-scenarios?after={first_of['next']}"))["items"]
    assert [(m["name"], m["runs"], m["newest"], m["shipped"]) for m in measured] == [
        ("mine/a", 1, ids[4], False),
        ("mine/b", 1, ids[3], False),
        ("other/c", 3, ids[0], False),
    ]
    assert measured[0]["newest_at"] == first["created_at"]
    listed = (await bench.get("/runs"))["items"]
    assert [run["ahead"] for run in listed] == [2, 1, None, None, None]
    page = await bench.get("/runs?limit=2")
    rest = await bench.get(f"/runs?limit=200&after={page['next']}")
    assert [r["id"] for r in page["items"] + rest["items"]] == ids
    assert "setup" not in listed[0]
    assert listed[3]["metrics"] == second["metrics"]


async def test_a_run_is_cancelled(bench: Api, runner: FakeRunner) -> None:
    runner.held = True
    ordered = await bench.post("/runs", {"scenario": small()}, expect=202)
    await runner.begun()
    export = f"/runs/{ordered['id']}/export"
    assert await bench.refused("GET", export, status=422) == [("run", "not_ended")]
    await bench.ask("DELETE", f"/runs/{ordered['id']}", expect=202)
    done = await bench.run_ended(ordered["id"])
    assert (done["state"], done["counts"], done["record"]) == ("cancelled", False, None)
    refused = await bench.refused("DELETE", f"/runs/{ordered['id']}", status=409)
    assert refused == [("run", "too_late")]


@pytest.mark.parametrize("format", ["json", "csv.gz", "parquet"])
async def test_what_is_exported_is_imported_to_the_same_values(
    bench: Api, tmp_path: Path, format: str
) -> None:
    done = await do(bench)
    response = await bench.send("GET", f"/runs/{done['id']}/export?format={format}")
    assert response.status_code == 200
    assert f'.{format}"' in response.headers["content-disposition"]
    if format == "json":
        document = response.json()
    else:
        read = {"csv.gz": exchange.from_csv_gz, "parquet": parquet.from_parquet}[format]
        document = exchange.to_document(read(response.content))
    twice = await bench.refused("POST", "/runs/import", document, status=409)
    assert twice == [("id", "duplicate_name")]
    other = tmp_path / "other"
    other.mkdir()
    async with running_api(other, hosts=()) as elsewhere:
        imported = await elsewhere.post("/runs/import?name=r.json", document)
        assert imported["imported_from"] == "r.json"
        found = await elsewhere.get(f"/runs/{done['id']}")
        assert {**found, "imported_from": ""} == done
        again = await elsewhere.send("GET", f"/runs/{done['id']}/export")
        same = again.json()
        same["run"]["imported_from"] = ""
        assert same == document if format == "json" else exchange.from_document(same)


async def test_parquet_without_its_extra_says_what_to_install(
    bench: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = await do(bench)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = f"/runs/{done['id']}/export?format=parquet"
    response = await bench.send("GET", path)
    assert response.status_code == 503
    (problem,) = response.json()["errors"]
    assert (problem["field"], problem["code"]) == ("format", "extra_missing")
    assert "pip install vmtune[parquet]" in problem["remedy"]


@pytest.mark.parametrize("name", [path.name for path in sorted(REPORTS.glob("*.json"))])
async def test_reports_of_guestperf_are_imported_and_given_back(bench: Api, name: str) -> None:
    document = json.loads(_text(REPORTS / name))
    imported = await bench.post(f"/runs/import?name={name}", document)
    assert imported["imported_from"] == f"guestperf: {name}"
    assert imported["ended"]
    twice = await bench.refused("POST", "/runs/import", document, status=409)
    assert twice == [("id", "duplicate_name")]
    back = await bench.send("GET", f"/runs/{imported['id']}/export?format=guestperf")
    assert back.json() == document
    old = await bench.send("GET", f"/runs/{imported['id']}/export?format=guestperf-old")
    assert "dirty_limit" not in old.json()["scenario"]


@pytest.mark.parametrize(
    ("document", "field", "code"),
    [
        ({}, "format", "missing"),
        ({"format": "vmtune run", "version": 1, "run": {}}, "run.id", "missing"),
        ({"format": "vmtune run", "version": 9, "run": {}}, "version", "unknown_version"),
        ({"format": "x", "version": 1, "run": {}}, "format", "unknown_format"),
        ({"progress_history": 3, "guest_timings": 4}, "binary", "missing"),
    ],
)
async def test_what_is_no_run_is_refused(bench: Api, document: Any, field: str, code: str) -> None:
    refused = await bench.refused("POST", "/runs/import", document, status=422)
    assert (field, code) in refused
    assert (await bench.get("/runs"))["items"] == []


async def test_an_import_may_be_larger_than_other_bodies(tmp_path: Path) -> None:
    options = {"max_import_bytes": 4000}
    async with running_api(tmp_path, hosts=(), max_body_bytes=2000, options=options) as api:
        document = {"x": "y" * 3000}
        assert await api.refused("POST", "/runs/import", document, status=422)
        (refused,) = await api.refused("POST", "/runs", document, status=413)
        assert refused == ("body", "body_too_large")
        response = await api.send("POST", "/runs/import", {"x": "y" * 5000})
        assert response.status_code == 413
        assert "max_import_bytes" in response.text


async def test_a_table_is_packed(bench: Api) -> None:
    done = await do(bench)
    response = await bench.send("GET", f"/runs/{done['id']}/export?format=csv.gz")
    assert response.headers["content-type"] == "application/gzip"
    assert gzip.decompress(response.content).startswith(b"part,name,value,json,")


async def test_a_picture_is_one_page_that_needs_nothing_else(bench: Api) -> None:
    done = await do(bench)
    response = await bench.send("GET", f"/runs/{done['id']}/plot")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "<svg" in response.text
    assert done["scenario"] in response.text


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        ({}, 422, ("scenario", "missing")),
        ({"scenario": "nope"}, 422, ("scenarios.0", "unknown_scenario")),
        ({"scenario": 3}, 422, None),
        ({"scenario": small(), "binary": "/bin/sh"}, 422, ("binary", "unknown_field")),
        ({"scenario": small(), "qemu": "/bin/sh"}, 422, ("qemu", "unknown_qemu")),
        ({"scenario": small(), "testbed": "moon"}, 422, ("testbed", "not_a_choice")),
        ({"scenario": small(), "profile": "none"}, 404, ("profile", "not_found")),
        ({"scenario": small(), "changes": {"warmup_s": -1}}, 422,
         ("changes.warmup_s", "invalid_value")),
        ({"scenario": small(), "values": {"multifd_channels": 2}}, 422,
         ("values.multifd_channels", "needs_multifd")),
        ({"scenario": small(values={"dirty_ring_size_entries": 4096}), "kvm": False}, 409,
         ("scenario", "not_applicable")),
    ],
)  # fmt: skip
async def test_a_bad_order_is_refused(
    bench: Api, body: Any, status: int, problem: tuple[str, str] | None
) -> None:
    refused = await bench.refused("POST", "/runs", body, status=status)
    assert problem is None or problem in refused
    assert (await bench.get("/runs"))["items"] == []


async def test_what_is_not_there(bench: Api) -> None:
    id = "00000000-0000-4000-8000-000000000001"
    paths = ["", "/plot", "/export", *(f"/{series}" for series in Series)]
    for path in paths:
        assert await bench.refused("GET", f"/runs/{id}{path}", status=404) == [("run", "not_found")]
    assert await bench.refused("DELETE", f"/runs/{id}", status=404) == [("run", "not_found")]
    missing = await bench.refused("GET", "/environments/0123", status=404)
    assert missing == [("fingerprint", "not_found")]
    assert await bench.refused("GET", "/runs?stat=x", status=422)
    assert await bench.refused("GET", f"/runs/{id}/samples?limit=1001", status=422)


async def test_a_running_vm_takes_the_scope_of_who_may_change_it(bench: Api) -> None:
    scenario = {"kind": "block", "cell": {"node": "null-co", "rw": "read"}}
    target = {"vm": str(VM)}
    matrix = {"name": "m", "arms": [{"name": "a"}], "block": {"target": target}}
    orders: list[tuple[str, Any]] = [
        ("/runs", {"scenario": {**scenario, "target": target}}),
        ("/runs", {"scenario": scenario, "changes": {"target": target}}),
        ("/campaigns", matrix),
        ("/campaigns/forecast", matrix),
    ]
    for scopes, status, code in (
        (["bench"], 403, "scope_missing"),
        (["bench", "apply"], 404, "not_found"),  # it is looked for
    ):
        token = await admin_token(bench.container, scopes=scopes)
        for path, body in orders:
            refused = await bench.refused(
                "POST", path, body, status=status, Authorization=f"Bearer {token}"
            )
            assert [found for _, found in refused] == [code], path

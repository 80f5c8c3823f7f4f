"""fio's JSON: what is read from it, and that nothing of it is lost."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.block.fio_json import MAX_CHARACTERS, FioReport, read_fio
from vmtune.errors import InvalidInput

DATA = Path(__file__).parents[3] / "data" / "fio"
FILES = sorted(DATA.glob("*.json"))


def text(name: str) -> str:
    return (DATA / f"{name}.json").read_text("utf-8")


GROUP: Any = json.loads(text("3.33-null-group"))
"""Recorded from fio 3.33: randrw, two jobs, reported as a group."""


WITH_NAN = text("3.33-null-group").replace('"latency_window" : 0', '"latency_window" : NaN')


def read(document: Any) -> FioReport:
    return read_fio(json.dumps(document))


def test_a_group_of_jobs() -> None:
    report = read_fio(text("3.33-null-group"))
    (job,) = report.jobs
    assert (report.version, job.name, job.error, report.failed) == ("fio-3.33", "job1", 0, False)
    assert job.options["iodepth"] == "8"
    assert [each.direction for each in job.directions] == ["read", "write"]
    reads = job.directions[0]
    assert (reads.requests, reads.iops, reads.bytes_per_s) == (2023508, 2021486.513487, 8280008759)
    assert reads.runtime_ms == 1001
    latency = report.latency("read")
    assert latency is reads.latency
    assert latency is not None
    assert (latency.kind, latency.count) == ("clat", 2023508)
    assert (latency.min_ns, latency.max_ns) == (110, 2034935)
    assert (latency.mean_ns, latency.deviation_ns) == (305.434585, 2081.506734)
    assert latency.percentiles[50.0] == 251
    assert latency.percentiles[99.99] == 38144
    assert list(latency.percentiles) == sorted(latency.percentiles)
    assert report.iops == pytest.approx(2021486.513487 + 2021628.371628)


def test_jobs_that_were_reported_one_by_one() -> None:
    report = read_fio(text("3.33-raw-two-jobs"))
    assert [job.name for job in report.jobs] == ["reads", "reads"]
    assert report.iops == sum(job.iops for job in report.jobs)
    assert report.latency("read") is None  # percentiles of two jobs cannot be put together
    assert report.latency("write") is None


def test_a_report_of_a_run_that_never_began() -> None:
    report = read_fio(text("3.33-no-connection"))
    assert report.failed
    assert report.messages == (
        "fio: nbd_connect_uri: nbd_connect_uri: connect: No such file or directory"
    )
    assert report.jobs[0].error == 0  # fio itself does not call that an error
    assert report.jobs[0].directions == ()
    assert (report.iops, report.latency("read")) == (0, None)


def test_an_error_is_a_failure_whatever_was_done() -> None:
    document = copy.deepcopy(GROUP)
    document["jobs"][0]["error"] = 5
    assert read(document).failed


def test_total_latencies_where_only_those_have_percentiles() -> None:
    document = copy.deepcopy(GROUP)
    part = document["jobs"][0]["read"]
    part["lat_ns"]["percentile"] = part["clat_ns"].pop("percentile")
    del part["lat_ns"]["N"]  # as early fio 3 has it
    latency = read(document).latency("read")
    assert latency is not None
    assert (latency.kind, latency.mean_ns, latency.count) == ("lat", 348.885159, 2023508)
    assert latency.percentiles[50.0] == 251


def test_latencies_may_be_switched_off() -> None:
    document = copy.deepcopy(GROUP)
    for name in ("clat_ns", "lat_ns", "slat_ns"):
        del document["jobs"][0]["read"][name]
    report = read(document)
    assert report.latency("read") is None
    assert report.iops > 0


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@given(st.text().filter(lambda name: name not in GROUP), json_values)
def test_what_a_later_fio_adds_is_kept(name: str, value: Any) -> None:
    document = {**GROUP, name: value}
    report = read(document)
    assert report.document == document
    assert report.iops == read(GROUP).iops


def paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(node, dict | list):
        return [path]
    below = node.items() if isinstance(node, dict) else enumerate(node)
    return [path, *(deeper for key, each in below for deeper in paths(each, (*path, key)))]


@given(st.sampled_from(paths(GROUP)[1:]), json_values)
def test_whatever_stands_in_a_place_is_read_or_refused_by_field(
    path: tuple[Any, ...], value: Any
) -> None:
    document = copy.deepcopy(GROUP)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    try:
        report = read(document)
    except InvalidInput as error:
        assert all(p.field.startswith("fio") and p.message and p.remedy for p in error.problems)
    else:
        assert report.document == document


def _job(document: Any) -> Any:
    return document["jobs"][0]


@pytest.mark.parametrize(
    ("damage", "field", "code"),
    [
        (lambda d: d.pop("fio version"), "fio.fio version", "not_fio"),
        (lambda d: d.pop("jobs"), "fio.jobs", "missing"),
        (lambda d: d.update(jobs=[{}]), "fio.jobs.0", "missing"),
        (lambda d: _job(d)["read"].pop("iops"), "fio.jobs.0.read.iops", "invalid_value"),
        (lambda d: _job(d)["read"].update(total_ios=-1), "fio.jobs.0.read.total_ios",
         "invalid_value"),
        (lambda d: _job(d)["read"]["clat_ns"]["percentile"].update(p99=1),
         "fio.jobs.0.read.clat_ns.percentile.p99", "invalid_value"),
        (lambda d: _job(d)["read"]["clat_ns"]["percentile"].update(nan=1),
         "fio.jobs.0.read.clat_ns.percentile.nan", "invalid_value"),
        (lambda d: [_job(d)["read"].pop("lat_ns"),
                    _job(d)["read"].update(clat=_job(d)["read"].pop("clat_ns"))],
         "fio.jobs.0.read.clat_ns", "too_old"),
    ],
)  # fmt: skip
def test_what_fio_would_not_write_is_told_by_field(damage: Any, field: str, code: str) -> None:
    document = copy.deepcopy(GROUP)
    damage(document)
    with pytest.raises(InvalidInput) as refused:
        read(document)
    assert (field, code) in [(each.field, each.code) for each in refused.value.problems]


@pytest.mark.parametrize(
    "said",
    ["", "fio: no such engine", "{", "[]", WITH_NAN, "[" * 100_000,
     text("3.33-null-group")[:3000], "x" * (MAX_CHARACTERS + 1)],
    ids=["empty", "message", "begun", "list", "nan", "deep", "cut off", "long"],
)  # fmt: skip
def test_what_is_no_report_is_told(said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_fio(said)
    assert all(p.field.startswith("fio") and p.message and p.remedy for p in refused.value.problems)


def test_what_fio_tells_of_both_directions_together_is_counted_once() -> None:
    report = read_fio(text("3.33-null-both"))
    (job,) = report.jobs
    assert [each.direction for each in job.directions] == ["read", "write"]
    assert job.mixed is not None
    assert report.requests == job.mixed.requests == sum(d.requests for d in job.directions)
    assert report.bytes_per_s == pytest.approx(job.mixed.bytes_per_s, rel=1e-3)
    assert report.runtime_ms == job.mixed.runtime_ms
    assert report.overall_latency is job.mixed.latency
    assert read_fio(text("3.33-raw-two-jobs")).overall_latency is None


def test_where_fio_tells_of_them_together_only_that_is_taken() -> None:
    document = json.loads(text("3.33-null-both"))
    for name in ("read", "write", "trim"):
        del document["jobs"][0][name]
    (job,) = read(document).jobs
    assert [each.direction for each in job.directions] == ["mixed"]
    assert job.mixed is None
    assert job.latency is job.directions[0].latency is not None

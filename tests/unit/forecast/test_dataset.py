"""The dataset of migrations: what is drawn, and the published file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from tests.perf.dataset import OF_ONE_WORKLOAD, SEED, drawn, probe_of
from tests.perf.dataset_file import PUBLISHED, pack, read_lines, unpack, unpack_lines

MIGRATION: dict[str, Any] = {  # any: JSON
    "number": 1,
    "profile": "stock",
    "values": {"downtime_limit_ms": 30},
    "state": "completed",
    "totals": {"total_time_ms": 900},
    "begun_ms": 1000,
    "samples": [{"at_ms": 3, "remaining_bytes": 4096}],
    "silences": [{"at_ms": 1500, "duration_ms": 21}],
    "load": {"busy": 0.5, "stolen": 0.0, "waiting": None},
}
OTHER = MIGRATION | {
    "number": 0,
    "values": {"downtime_limit_ms": 50, "multifd": True},
    "state": "not converged",
    "totals": None,
    "silences": [],
}


def test_draws_are_the_same_each_time_and_others_with_another_seed() -> None:
    assert drawn(1, 7) == drawn(1, 7)
    assert [drawn(1, n).scenario for n in range(20)] != [drawn(2, n).scenario for n in range(20)]


def test_migrations_of_a_group_differ_in_nothing_but_their_settings() -> None:
    first = [range(n, n + 4) for n in range(0, 340, 4)]
    later = [range(n, n + OF_ONE_WORKLOAD) for n in range(340, 2000, OF_ONE_WORKLOAD)]
    for numbers in (*first, *later):
        group = [drawn(3, n) for n in numbers]
        assert len({(one.kind, one.scenario.workload, one.scenario.vm) for one in group}) == 1
        assert len({json.dumps(dict(one.scenario.values)) for one in group}) > 1


def test_what_is_drawn_covers_what_guests_do() -> None:
    every = [drawn(SEED, n) for n in range(0, 2000)]
    work = [one.scenario.workload for one in every]
    assert len(set(work)) >= 50
    assert {w.skew_percent for w in work} == {0, 50, 70, 80, 90}
    assert any(w.idle_ms for w in work)
    assert any(w.zero_percent for w in work)
    assert any(w.random_percent for w in work)
    assert any(not w.dirty_mb_per_s for w in work)
    assert any(w.dirty_mb_per_s == 1 for w in work)
    profiles = {one.profile for one in every}
    assert profiles == {"stock", "auto-converge", "multifd", "xbzrle", "zstd"}


def test_a_packed_file_gives_back_what_was_packed_by_number(tmp_path: Path) -> None:
    file = tmp_path / "migrations.parquet"
    pack([MIGRATION, OTHER], file)
    assert unpack(file) == [OTHER, MIGRATION]
    assert unpack_lines(file, tmp_path / "new" / "migrations.jsonl") == 2
    assert read_lines(tmp_path / "new" / "migrations.jsonl") == [OTHER, MIGRATION]


@pytest.mark.parametrize(("silence", "stays"), [
    ({"at_ms": 900, "duration_ms": 99}, False),  # over before the migration began
    ({"at_ms": 900, "duration_ms": 100}, True),
    ({"at_ms": 1200, "duration_ms": 19}, False),
    ({"at_ms": 1200, "duration_ms": 20}, True),
])  # fmt: skip
def test_short_and_early_silences_are_left_out(
    tmp_path: Path, silence: dict[str, int], stays: bool
) -> None:
    file = tmp_path / "migrations.parquet"
    pack([MIGRATION | {"silences": [silence]}], file)
    assert unpack(file)[0]["silences"] == ([silence] if stays else [])


def test_a_line_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    lines = tmp_path / "migrations.jsonl"
    lines.write_text(json.dumps(MIGRATION) + '\n{"number": 2, "pro')
    assert read_lines(lines) == [MIGRATION]


def test_the_published_file_is_what_it_says_it_is() -> None:
    assert PUBLISHED.stat().st_size <= 8 << 20
    assert parquet.read_schema(PUBLISHED).metadata[b"licence"] == b"CC-BY-4.0"
    migrations = unpack(PUBLISHED)
    assert [one["number"] for one in migrations] == list(range(len(migrations)))
    assert len({json.dumps(one["workload"]) for one in migrations}) >= 50
    for one in migrations:
        asked = drawn(SEED, one["number"])
        assert (one["profile"], one["kind"]) == (asked.profile, asked.kind)
        assert one["workload"] == asdict(asked.scenario.workload)
        assert one["values"] == dict(asked.scenario.values)
        assert (one["totals"] is not None) == (one["state"] == "completed")


def test_a_probe_serves_only_a_guest_that_does_the_same() -> None:
    """Also where a folder of another seed is gone on with, or of before drawing was changed."""
    published = unpack(PUBLISHED)
    first = next(
        one for one in published if one["probe"] and one["probe"]["number"] == one["number"]
    )
    number = first["number"]
    assert probe_of(drawn(SEED, number + 1), [None, first]) == first["probe"]
    assert probe_of(drawn(SEED, number + OF_ONE_WORKLOAD), [first]) is None
    assert probe_of(drawn(SEED, number), [first | {"probe": None}]) is None


def test_the_published_migrations_are_still_drawn() -> None:
    """Else a second collection would not go on where the first ended."""
    for one in unpack(PUBLISHED):
        again = drawn(SEED, one["number"])
        assert (again.kind, again.profile) == (one["kind"], one["profile"])
        assert asdict(again.scenario.workload) == one["workload"]
        assert dict(again.scenario.values) == one["values"]

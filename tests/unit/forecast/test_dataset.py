"""The dataset of migrations: what is drawn, and the published file."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from tests.perf.forecasts import dataset
from tests.perf.forecasts.dataset import collect, of_other_draws, probe_of
from tests.perf.forecasts.dataset_drawn import (
    OF_ONE_WORKLOAD,
    REPEATED,
    SEED,
    Drawn,
    drawn,
    repeats,
    workload_of,
)
from tests.perf.forecasts.dataset_file import (
    PUBLISHED,
    SHEET,
    pack,
    publish,
    read_lines,
    unpack,
    unpack_lines,
)
from tests.perf.forecasts.dataset_sheet import BEGIN, END, with_figures
from tests.perf.forecasts.forecast import counted, forecast
from vmtune.errors import SetupError

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


FIRST = [range(n, n + 4) for n in range(0, 340, 4)]
LATER = [range(n, min(2000, n + OF_ONE_WORKLOAD)) for n in range(340, 2000, OF_ONE_WORKLOAD)]
OTHERS = [range(n, n + OF_ONE_WORKLOAD) for n in range(0, 400, OF_ONE_WORKLOAD)]


@pytest.mark.parametrize(("seed", "groups"), [(SEED, FIRST), (SEED, LATER), (3, OTHERS)])
def test_migrations_of_a_group_differ_in_nothing_but_their_settings(
    seed: int, groups: list[range]
) -> None:
    for numbers in groups:
        group = [drawn(seed, n) for n in numbers]
        assert len({(one.kind, one.scenario.workload, one.scenario.vm) for one in group}) == 1
        assert len({json.dumps(dict(one.scenario.values)) for one in group}) > 1
        assert len({workload_of(seed, n) for n in numbers}) == 1


def test_the_last_migrations_of_a_group_repeat_its_first() -> None:
    for numbers in LATER[:-1]:
        again = [number for number in numbers if repeats(SEED, number) != number]
        assert again == list(numbers[-REPEATED:])
        for number, original in zip(again, numbers, strict=False):
            assert repeats(SEED, number) == original
            one, other = drawn(SEED, number), drawn(SEED, original)
            assert (one.profile, one.scenario.values) == (other.profile, other.scenario.values)
    assert all(repeats(SEED, number) == number for number in range(340))


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


def test_guests_of_the_later_ones_hold_pages_as_real_ones_do() -> None:
    """Else all that compresses sends next to nothing, whoever the guest is."""
    later = [drawn(SEED, n) for n in range(340, 2000)]
    assert all(one.scenario.workload.random_percent for one in later if one.kind != "content")
    held = {one.scenario.workload.random_percent for one in later}
    assert len(held) >= 6


def test_bandwidths_of_the_later_ones_leave_the_guests_memory_some_time() -> None:
    for one in (drawn(SEED, n) for n in range(340, 2000)):
        bandwidth = one.scenario.values["max_bandwidth_bytes_per_s"]
        assert isinstance(bandwidth, int)
        region = one.scenario.workload.region_bytes
        assert bandwidth <= 25 << 20 or region / bandwidth >= 0.4


def test_a_packed_file_gives_back_what_was_packed_by_number(tmp_path: Path) -> None:
    file = tmp_path / "migrations.parquet"
    pack([MIGRATION, OTHER], file)
    assert unpack(file) == [OTHER, MIGRATION]
    assert unpack_lines(file, tmp_path / "new" / "migrations.jsonl") == 2
    assert read_lines(tmp_path / "new" / "migrations.jsonl") == [OTHER, MIGRATION]


def test_a_migration_without_some_fields_does_not_cost_the_others_theirs(tmp_path: Path) -> None:
    """As of one that the machine failed before it began."""
    failed = {"number": 0, "state": "not run", "values": {}}
    pack([failed, MIGRATION], tmp_path / "migrations.parquet")
    first, second = unpack(tmp_path / "migrations.parquet")
    assert second == MIGRATION
    assert first["totals"] is None


def test_a_folder_that_was_not_filled_to_the_end_is_filled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the published ones that are missing are done again, after hours of others."""
    file, lines = tmp_path / "migrations.parquet", tmp_path / "a" / "migrations.jsonl"
    pack([MIGRATION], file)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            unpack_lines(file, lines)
    assert not lines.exists()
    assert unpack_lines(file, lines) == 1
    assert [each.name for each in lines.parent.iterdir()] == ["migrations.jsonl"]


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


def test_silences_have_no_digits_that_nobody_measures(tmp_path: Path) -> None:
    file = tmp_path / "migrations.parquet"
    pack([MIGRATION | {"silences": [{"at_ms": 1500.123456, "duration_ms": 21.98765}]}], file)
    assert unpack(file)[0]["silences"] == [{"at_ms": 1500.1, "duration_ms": 22.0}]


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


def test_the_published_datasheet_has_the_figures_of_the_file() -> None:
    sheet = SHEET.read_text()
    assert with_figures(sheet, unpack(PUBLISHED)) == sheet


def collected(folder: Path, migrations: list[dict[str, Any]]) -> Path:  # any: JSON
    folder.mkdir()
    lines = "".join(json.dumps(one) + "\n" for one in migrations)
    (folder / "migrations.jsonl").write_text(lines)
    return folder


def drawn_migration(number: int, **fields: Any) -> dict[str, Any]:  # any: JSON
    """As one that is collected: what is drawn, and what the first published one went like."""
    asked = drawn(SEED, number)
    return unpack(PUBLISHED)[0] | {
        "number": number,
        "profile": asked.profile,
        "kind": asked.kind,
        "memory_bytes": asked.scenario.vm.memory_bytes,
        "vcpus": asked.scenario.vm.vcpus,
        "workload": asdict(asked.scenario.workload),
        "values": dict(asked.scenario.values),
        **fields,
    }


def test_new_migrations_are_published_after_the_old_ones(tmp_path: Path) -> None:
    file, sheet = tmp_path / "migrations.parquet", tmp_path / "README.md"
    sheet.write_text(f"Before.\n\n{BEGIN}\nold\n{END}\n\nAfter.\n")
    publish(collected(tmp_path / "a", [drawn_migration(0), drawn_migration(1)]), file, sheet)
    again = [drawn_migration(1, state="not run"), drawn_migration(2)]
    publish(collected(tmp_path / "b", again), file, sheet)
    published = unpack(file)
    assert [one["number"] for one in published] == [0, 1, 2]
    assert published[1]["state"] != "not run"  # what was published stays
    assert "- 3 migrations of 1 workloads" in sheet.read_text()
    assert sheet.read_text().startswith("Before.")
    assert sheet.read_text().endswith("After.\n")


@pytest.mark.parametrize(("wrong", "reason"), [
    ([drawn_migration(0), drawn_migration(2)], "not collected: \\[1"),
    ([drawn_migration(0), drawn_migration(1, profile="other")], "not as they are drawn: \\[1"),
])  # fmt: skip
def test_what_is_not_whole_is_not_published(
    tmp_path: Path, wrong: list[dict[str, Any]], reason: str
) -> None:
    file, sheet = tmp_path / "migrations.parquet", tmp_path / "README.md"
    sheet.write_text(f"{BEGIN}\n{END}\n")
    with pytest.raises(ValueError, match=reason):
        publish(collected(tmp_path / "a", wrong), file, sheet)
    assert not file.exists()
    assert sheet.read_text() == f"{BEGIN}\n{END}\n"


def test_2000_migrations_fit_into_what_is_published() -> None:
    published = unpack(PUBLISHED)
    assert PUBLISHED.stat().st_size / len(published) * 2000 <= 8 << 20


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


def test_a_torn_last_line_is_cut_off_and_the_rest_is_kept(tmp_path: Path) -> None:
    """As a kill leaves it; nothing is missing then, so nothing is migrated."""
    lines = tmp_path / "migrations.jsonl"
    lines.write_text(json.dumps(OTHER) + "\n" + json.dumps(MIGRATION) + '\n{"number": 2, "pro')
    assert collect(lines, 2, SEED) == [OTHER, MIGRATION]
    assert read_lines(lines) == [OTHER, MIGRATION]
    assert lines.read_text().endswith("}\n")


def test_a_folder_of_other_draws_is_not_gone_on_with(tmp_path: Path) -> None:
    """Hours later it could not be published."""
    ours = [drawn_migration(0), drawn_migration(340)]
    other = drawn_migration(341) | {"workload": drawn_migration(0)["workload"]}
    lines = collected(tmp_path / "a", [*ours, other]) / "migrations.jsonl"
    assert of_other_draws(lines, SEED) == [341]
    assert of_other_draws(lines, SEED + 1) == [0, 340, 341]
    assert of_other_draws(collected(tmp_path / "b", ours) / "migrations.jsonl", SEED) == []
    assert of_other_draws(tmp_path / "none.jsonl", SEED) == []


def test_what_the_machine_failed_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []

    async def migrate_all(
        group: list[Drawn], at: Path, probed: object, to: Callable[[dict[str, Any]], None]
    ) -> None:
        for one in group:
            done.append(one.number)
            to(drawn_migration(one.number, state="completed"))

    monkeypatch.setattr(dataset, "migrate_all", migrate_all)
    failed = drawn_migration(1, state="not run", totals=None, failure="no")
    lines = collected(tmp_path / "a", [drawn_migration(0), failed]) / "migrations.jsonl"
    assert [one["state"] for one in collect(lines, 3, SEED)][1:] == ["completed"] * 2
    assert done == [1, 2]
    assert {one["number"]: one["state"] for one in read_lines(lines)}[1] == "completed"


def test_two_do_not_collect_into_one_folder(tmp_path: Path) -> None:
    """As after a kill that did not reach the collection itself."""
    lines = collected(tmp_path / "a", [drawn_migration(0)]) / "migrations.jsonl"
    torn = lines.read_text() + '{"number": 1, "pro'
    lines.write_text(torn)
    with lines.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(SetupError, match="another process adds to"):
            collect(lines, 1, SEED)
        assert lines.read_text() == torn
    assert len(collect(lines, 1, SEED)) == 1


def test_a_guest_that_does_not_start_does_not_end_the_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs for hours, and nobody looks; only where no guest starts any more, it ends."""
    starts = {number: number not in (340, 380, 400) for number in range(340, 420, 20)}

    async def migrate_all(
        group: list[Drawn], at: Path, probed: object, to: Callable[[dict[str, Any]], None]
    ) -> None:
        if not starts[group[0].number]:
            raise SetupError("the guest did not start", code="guest_did_not_start")
        for one in group:
            to(drawn_migration(one.number, state="completed"))

    monkeypatch.setattr(dataset, "migrate_all", migrate_all)
    first = [one for one in unpack(PUBLISHED) if one["number"] < 340]
    lines = collected(tmp_path / "a", first) / "migrations.jsonl"
    with pytest.raises(SetupError, match="did not start"):
        collect(lines, 420, SEED)
    states = {one["number"]: one["state"] for one in read_lines(lines)}
    assert [states.get(number) for number in range(340, 420, 20)] == [
        "not run",
        "completed",
        "not run",
        None,
    ]
    assert sum(state == "not run" for state in states.values()) == 40


def test_the_published_migrations_are_still_drawn() -> None:
    """Else a second collection would not go on where the first ended."""
    for one in unpack(PUBLISHED):
        again = drawn(SEED, one["number"])
        assert (again.kind, again.profile) == (one["kind"], one["profile"])
        assert asdict(again.scenario.workload) == one["workload"]
        assert dict(again.scenario.values) == one["values"]


def test_a_forecast_counts_all_that_its_probe_saw_of_the_memory() -> None:
    published = unpack(PUBLISHED)
    plain = next(one for one in published if one["profile"] == "stock" and one["totals"])
    pages = {"pages": 1000, "zero_share": 0.9, "packed_share": 0.5}
    seen = plain | {"probe": plain["probe"] | {"contents": pages, "held_bytes": 8 << 20}}
    before, after = (forecast(one, published, 30).computed.sent_bytes for one in (plain, seen))
    assert before is not None
    assert after is not None
    assert after.likely < before.likely - (plain["probe"]["used_bytes"] - (64 << 20))


def test_what_the_machine_failed_does_not_count_nor_the_first_ones_next_to_later_ones() -> None:
    first, later = drawn_migration(0), drawn_migration(340)
    failed = drawn_migration(341, state="failed", totals=None)
    unprobed = drawn_migration(342, state="not run", probe=None)
    assert counted([first, later, failed, unprobed], SEED) == [later]
    assert counted([first, failed], SEED) == [first]
    assert counted([first, later], 7) == [first, later]
